"""Where in a run the hashes with each prefix begin: so a hash is found by a look at one number and at a few of its neighbours.

    post p   =  the first line whose hash has a prefix of p or more          (about one post to four lines, half a word each)

Runs never change, so posts are set up once, when somebody looks up rows one after the other; a run of few rows needs none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import uint64

from headwater.compiled import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Hashes = NDArray[np.uint64]
    Posts = NDArray[np.uint32]

# Fewer lines than this are searched by bisection.
_SMALL = 256
# Lines to a post, at most.
_APART = 4


class Signposts:
    """The posts of one run."""

    __slots__ = ("_posts", "line")

    def __init__(self) -> None:
        self._posts: Posts | None = None
        self.line: tuple[int, ...] | None = None
        """What loops are told of the run (`stored`), once somebody asked."""

    def along(self, hashes: Hashes) -> Posts | None:
        """One for each prefix of as many bits as it takes, and one for the end; None where they are of no use."""
        if len(hashes) < _SMALL or len(hashes) >= 1 << 32:
            return None
        if self._posts is None:
            self._posts = _set_up(hashes, (len(hashes) // _APART).bit_length())
        return self._posts

    @property
    def nbytes(self) -> int:
        return 0 if self._posts is None else self._posts.nbytes


@compiled
def _set_up(hashes: Hashes, bits: int) -> Posts:
    posts = np.empty((1 << bits) + 1, np.uint32)
    shift, post = uint64(64 - bits), 0
    for line in range(hashes.size):
        prefix = np.int64(hashes[line] >> shift)
        while post <= prefix:
            posts[post] = line
            post += 1
    posts[post:] = hashes.size
    return posts
