"""The playground's font: the few signs of control tokens that common monospaced fonts lack, such as DeepSeek's bar.

Drawn here of straight lines, so that it needs no other font and no licence. Writes `markers.woff2` beside the page:
`uv run --with fonttools --with brotli scripts/marker_font.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

FONT = Path(__file__).parents[1] / "src" / "isogloss" / "server" / "playground" / "markers.woff2"

EM, CELL = 1000, 600
"""Units of the em, and the width of a cell in the common monospaced fonts."""

UNIX_EPOCH = 2_082_844_800
"""In seconds of the font format, which counts from 1904: no time of day, so that the file is always the same."""

Points = Sequence[tuple[int, int]]

GLYPHS: dict[str, tuple[int, Points]] = {
    "｜": (EM, [(465, -220), (465, 860), (535, 860), (535, -220)]),
    "▁": (CELL, [(0, -200), (0, -110), (CELL, -110), (CELL, -200)]),
    "【": (EM, [(620, -140), (620, 840), (900, 840), (780, 700), (720, 350), (780, 0), (900, -140)]),
    "】": (EM, [(380, -140), (100, -140), (220, 0), (280, 350), (220, 700), (100, 840), (380, 840)]),
}


def drawn(points: Points) -> object:
    pen = TTGlyphPen(None)
    pen.moveTo(points[0])
    for point in points[1:]:
        pen.lineTo(point)
    pen.closePath()
    return pen.glyph()


def main() -> None:
    names = {sign: f"uni{ord(sign):04X}" for sign in GLYPHS}
    builder = FontBuilder(EM, isTTF=True)
    builder.setupGlyphOrder([".notdef", *names.values()])
    builder.setupCharacterMap({ord(sign): name for sign, name in names.items()})
    builder.setupGlyf({".notdef": TTGlyphPen(None).glyph()} | {names[s]: drawn(p) for s, (_, p) in GLYPHS.items()})
    builder.setupHorizontalMetrics(
        {".notdef": (CELL, 0)} | {names[s]: (w, min(x for x, _ in p)) for s, (w, p) in GLYPHS.items()}
    )
    builder.setupHorizontalHeader(ascent=860, descent=-220)
    builder.setupNameTable({"familyName": "Isogloss Markers", "styleName": "Regular"})
    builder.setupOS2(sTypoAscender=860, sTypoDescender=-220, usWinAscent=860, usWinDescent=220)
    builder.setupPost()
    builder.font.recalcTimestamp = False
    builder.font["head"].created = builder.font["head"].modified = UNIX_EPOCH
    builder.font.flavor = "woff2"
    builder.save(FONT)


if __name__ == "__main__":
    main()
