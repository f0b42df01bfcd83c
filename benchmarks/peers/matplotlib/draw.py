"""`draw.py RESULTS.json PLOT.svg`: how many times as fast Isogloss is as each peer, a dot a work, log scale.

A bar is the spread of the rounds; an arrow says that the peer was stopped, so the ratio is at least that.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt

COLOURS = {
    "oh_my_pi": "#0072b2",
    "vllm": "#d55e00",
    "sglang": "#009e73",
    "renderers": "#cc79a7",
    "transformers": "#e69f00",
    "jinja2": "#56b4e9",
    "openai_harmony": "#0072b2",
    "llguidance": "#0072b2",
    "xgrammar": "#d55e00",
    "outlines_core": "#009e73",
    "lm_format_enforcer": "#cc79a7",
    "litellm": "#d55e00",
    "llama_cpp_python": "#009e73",
    "engine alone": "#555555",
}
PANELS = (
    (("scan", ", 20 KB"), ("render", "")),
    (("scan", ", 200 KB"), ("harmony", ""), ("schema", ""), ("server", "")),
)
TITLES = {"scan": "scanning, a call with an argument of{}", "render": "rendering", "harmony": "harmony"}
ROW = 0.19
"""Inches a row."""


def chosen(rows: list[dict[str, Any]], subject: str, suffix: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["subject"] == subject and row["case"].endswith(suffix)]


def panel(axes: Any, rows: list[dict[str, Any]], subject: str, suffix: str) -> None:
    cases = list(dict.fromkeys(row["case"] for row in rows))
    seen: set[str] = set()
    for row in rows:
        peer, ratio, place = row["peer"], row["ratio"], cases.index(row["case"])
        axes.plot([ratio["min"], ratio["max"]], [place, place], color=COLOURS[peer], linewidth=1, alpha=0.6)
        marker = ">" if row.get("stopped") else "o"
        label = "_" if peer in seen else f"{peer} {row['version']}"
        axes.plot([ratio["median"]], [place], marker, color=COLOURS[peer], markersize=4, label=label)
        seen.add(peer)
    axes.axvline(1, color="#888888", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(cases)), [case.removesuffix(suffix) if suffix else case for case in cases], fontsize=7)
    axes.set_ylim(len(cases) - 0.5, -0.5)
    axes.tick_params(axis="x", labelsize=7)
    axes.grid(axis="x", linewidth=0.3)
    axes.set_title(TITLES.get(subject, subject).format(suffix.lstrip(",")), fontsize=9, loc="left")
    axes.legend(fontsize=6, loc="upper center", bbox_to_anchor=(0.5, -0.25 / max(1, len(cases) * ROW)), ncols=4)


def main(source: str, target: str) -> None:
    rows = json.loads(Path(source).read_text("utf-8"))["rows"]
    mpl.rcParams.update({"svg.hashsalt": "isogloss", "svg.fonttype": "none", "axes.axisbelow": True})
    columns = [[(chosen(rows, *one), *one) for one in column] for column in PANELS]
    columns = [[part for part in column if part[0]] for column in columns]
    counts = [[len({row["case"] for row in part[0]}) * ROW + 0.95 for part in column] for column in columns]
    height = max(map(sum, counts))
    figure = plt.figure(figsize=(13, height))
    for place, (column, sizes) in enumerate(zip(columns, counts, strict=True)):
        top = height
        for (found, subject, suffix), size in zip(column, sizes, strict=True):
            bottom = (top - size + 0.65) / height
            axes = figure.add_axes((0.17 + place * 0.5, bottom, 0.31, (size - 0.95) / height))
            panel(axes, found, subject, suffix)
            top -= size
    figure.suptitle("")
    figure.savefig(target, metadata={"Date": None, "Creator": None})


main(*sys.argv[1:])
