"""A line of code in the user's editor."""

from __future__ import annotations

from PySide6.QtCore import QProcess, QUrl
from PySide6.QtGui import QDesktopServices

from app.diagnose.code import editor_command
from app.diagnose.data import Code


def open_code(code: Code, wanted: str = "") -> bool:
    """In `wanted`, the editor of the environment, or as the system does. False where that cannot be."""
    if code.path is None or not code.path.is_file():
        return False
    if argv := editor_command(code.path, code.line, wanted):
        return bool(QProcess.startDetached(argv[0], argv[1:])[0])
    return QDesktopServices.openUrl(QUrl.fromLocalFile(str(code.path)))
