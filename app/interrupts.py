"""Ctrl-C in the terminal, and a request to terminate, close the window in order."""

from __future__ import annotations

import signal
import socket

from PySide6.QtCore import QSocketNotifier
from PySide6.QtWidgets import QApplication


def quit_on_signals(app: QApplication) -> None:
    """The event loop ends with 128 + the signal's number; whoever runs it shuts down after that.

    Python runs its handlers only between two of its own instructions, which an idle
    event loop never reaches: a byte on a socket wakes it.
    """
    reader, writer = socket.socketpair()
    for end in (reader, writer):
        end.setblocking(False)
    notifier = QSocketNotifier(reader.fileno(), QSocketNotifier.Type.Read, app)
    ends = reader, writer  # live as long as the application, by this slot
    notifier.activated.connect(lambda *_: ends[0].recv(64))
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: app.exit(128 + number))
