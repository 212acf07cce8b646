"""Makes DataLoaders in several ways and says how they came out."""

import json
import warnings

import torch
from torch.utils.data import DataLoader

warnings.simplefilter("ignore")
data = torch.utils.data.TensorDataset(torch.arange(12.0))


class Own(DataLoader):
    def __init__(self, data, **settings):
        super().__init__(data, **settings)


def said(loader):
    return [loader.num_workers, loader.prefetch_factor, loader.pin_memory, loader.persistent_workers,
            torch.cat([b[0] for b in loader]).tolist()]


def make():
    seeded = torch.Generator().manual_seed(3)
    yield DataLoader(data, 4)
    yield DataLoader(data, 4, True, generator=seeded)
    yield Own(data, batch_size=4, num_workers=1, prefetch_factor=3, persistent_workers=True, timeout=30,
              multiprocessing_context="fork")
    yield DataLoader(data, batch_sampler=torch.utils.data.BatchSampler(range(12), 5, False), pin_memory=True)


if __name__ == "__main__":
    loaders = [said(loader) for loader in make()]
    try:
        DataLoader(data, 4, nonsense=1)
    except TypeError as error:
        print(error)
    print(json.dumps(loaders))
