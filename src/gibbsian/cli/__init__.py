"""The command line: parsing and printing only.

Modules here import nothing but Typer and the standard library when they are loaded, so that ``gibbsian --help`` answers
at once; what a command needs is imported when the command runs.
"""
