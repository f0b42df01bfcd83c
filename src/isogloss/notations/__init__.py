"""How one argument value is written. Per notation: a writer, an incremental reader that gives JSON text, a grammar."""
