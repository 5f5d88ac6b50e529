"""The way out where nothing can go on: which forms a reset has, what each writes and what it loses.

Pure, and without any library: operator and plugin decide by the same table and say the same words.
"""
