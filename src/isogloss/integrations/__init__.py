"""Isogloss inside other people's generation loops and servers.

Each module here needs the library that it is named after, when it is used and not before.
"""
