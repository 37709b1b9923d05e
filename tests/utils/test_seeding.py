"""Streams of random numbers: the same for the same name, different for any other."""

from feddep.utils.seeding import derive_seed, generator


def test_different_names_give_different_seeds():
    names = [
        (0,),
        (1,),
        (0, "a"),
        (1, "a"),
        (0, "a", "b"),
        (0, "b", "a"),
        (0, 1),
        (0, "1"),
        (0, 1, 2),
        (0, 12),
    ]
    assert len({derive_seed(*name) for name in names}) == len(names)


def test_the_law_is_fixed():
    """In every process. Published results rest on these numbers: whoever changes them changes every
    result.
    """
    assert derive_seed(0, "client", 3, "sampling") == 6904159937643249860
    assert generator(0, "split").permutation(6).tolist() == [3, 2, 4, 5, 1, 0]
