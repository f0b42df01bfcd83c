"""Stand-ins for other packages, name by name, so that code written for them runs on Isogloss unchanged."""
