from isogloss.grammar import *
