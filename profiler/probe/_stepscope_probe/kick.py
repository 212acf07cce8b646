"""Has the main thread do something soon, also while it waits in Python: in a sleep, for a lock, for a queue.

A call that is left to the interpreter is made between two bytecodes, and a thread that
waits makes none. A signal ends such a wait for the time of its handler, after which Python
waits on. The signal is one that is ignored otherwise: where it comes late nobody dies of it.
"""

import signal
import threading

from .pending import call_in_main_thread

_SIGNAL = getattr(signal, "SIGURG", None)


class Kick:
    """`action` is called on the main thread, once or more for a `send` between `listen` and `deafen`."""

    def __init__(self, action):
        self._action = action
        self._thread = None  # the main thread, while it listens

    def listen(self):
        """Python tells signals to the main thread alone, and a handler of the script's own stays."""
        if (_SIGNAL is not None and threading.current_thread() is threading.main_thread()
                and signal.getsignal(_SIGNAL) is signal.SIG_DFL):
            signal.signal(_SIGNAL, self._kicked)
            self._thread = threading.get_ident()

    def deafen(self):
        """On the thread that listens. A handler that the script has put there since stays."""
        if self._thread is not None and signal.getsignal(_SIGNAL) == self._kicked:
            signal.signal(_SIGNAL, signal.SIG_DFL)
        self._thread = None

    def send(self):
        """From any thread."""
        call_in_main_thread(self._action)
        self.again()

    def again(self):
        """The signal alone, where nothing came of the last one: it ends no wait that begins just after it."""
        thread = self._thread
        if thread is not None:
            signal.pthread_kill(thread, _SIGNAL)

    def _kicked(self, signum, frame):
        self._action()
