"""Types of the C++ part; see lab/python/src_core/bindings.cc."""

import numpy as np
import numpy.typing as npt

TOKENS: int
TOKEN_VALUES: int
VIEW_FIELDS: tuple[str, ...]

_Records = npt.NDArray[np.void]
_Bytes = npt.NDArray[np.uint8]

def waf(
    records: _Records,
    placement: str,
    streams: int = ...,
    tags: _Bytes = ...,
    spare: float = ...,
    block_pages: int = ...,
    warmup: float = ...,
    victim: str = ...,
    gc_mode: str = ...,
    releases: npt.NDArray[np.uint64] = ...,
) -> float: ...
def generator_names() -> list[str]: ...
def generated(name: str, pages: int, writes: int, seed: int = ...) -> tuple[_Bytes, bool]: ...

class Logistic:
    def train(self, landmark: int, tokens: npt.NDArray[np.uint32], lived: _Bytes) -> None: ...
    def score(self, tokens: npt.NDArray[np.uint32]) -> npt.NDArray[np.float32]: ...

class Views:
    def __init__(self, device_pages: int, live_pages: int) -> None: ...
    def feed(self, records: _Records) -> npt.NDArray[np.float32]: ...
