"""Runs a function on the main thread between two bytecodes, as a signal handler would."""

_kept = []  # a callback must outlive its call; there is at most one per window that ran out of bounds


def call_in_main_thread(action):
    import ctypes

    def call(_):
        action()
        return 0

    callback = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(call)
    _kept.append(callback)
    ctypes.pythonapi.Py_AddPendingCall(callback, None)
