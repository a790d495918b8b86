"""Errors as sentences for people."""


def sentence(error: BaseException) -> str:
    """Say what failed without Python's error number: "/x: No such file or directory"."""
    if isinstance(error, UnicodeDecodeError):
        return "not a text file"
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
