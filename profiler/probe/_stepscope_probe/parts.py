"""What a batch is made of, whatever holds it."""


def parts_of(batch):
    """Those of a list, a tuple or a mapping, to be gone through once; None of anything else."""
    if isinstance(batch, (list, tuple)):
        return batch
    if hasattr(batch, "values") and callable(batch.values):
        return batch.values()
    return None
