"""The screens of the window, one file a screen; large ones have files beside theirs."""
