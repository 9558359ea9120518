"""Compiled kernels that number strings: different ones differently, and in any order.

Strings are brought together in parts, by a keyed hash, with all of their bytes; each part is numbered by itself, so that
what is worked on stays in the processor's cache. A hash says where to look, and never who is equal. Its keys are random,
so that nobody can choose ids that are slow to tell apart. Nothing here can fail on a string.
"""

from __future__ import annotations

import numpy as np
from numba import njit

compiled = njit(nogil=True, cache=True)  # no fast math: what a float becomes is the same everywhere
inlined = njit(nogil=True, inline="always")

EIGHTH, HALF = np.uint64(3), np.uint64(2**32 - 1)  # a shift from bytes to words; half a word
PRIME = np.uint64(2**61 - 1)
CHUNK = np.uint64(256)  # bytes that are hashed with keys of their own, of 32 bits each: two for a word
PLACE, PARTS, SLOTS, KEYS = 64, 65, 66, 67  # where the other keys stand after these, and how many there are
NO_NAME = np.uint32(2**32 - 1)  # the length of a missing string: of another, Polars counts the bytes by 32 bits


@inlined
def word_at(data, at, left):
    """Eight bytes of a string as a word, the first lowest, with zeros beyond the `left` ones; words as they are."""
    if data.itemsize == 8:
        return np.uint64(data[at >> EIGHTH])
    word = np.uint64(0)
    if at + np.uint64(8) <= np.uint64(data.size):
        for place in range(8):
            word |= np.uint64(data[at + np.uint64(place)]) << np.uint64(8 * place)
        return word if left >= np.uint64(8) else word & ((np.uint64(1) << (left << EIGHTH)) - np.uint64(1))
    for place in range(min(left, np.uint64(8))):
        word |= np.uint64(data[at + np.uint64(place)]) << np.uint64(8 * place)
    return word


@inlined
def sum_of_products(data, at, length, keys):
    """A keyed sum over a few words: two different strings have the same one with a chance of at most 2**-31 (NH)."""
    total = np.uint64(0)
    for word in range((length + np.uint64(7)) >> EIGHTH):
        done = np.uint64(word) << EIGHTH
        value = word_at(data, at + done, length - done)
        low = ((value & HALF) + keys[2 * word]) & HALF
        high = ((value >> np.uint64(32)) + keys[2 * word + 1]) & HALF
        total += low * high
    return total


@inlined
def times(one, other):
    """The product of two numbers below 2**61, modulo 2**61 - 1, and at most a few times that."""
    one_high, one_low = one >> np.uint64(32), one & HALF
    other_high, other_low = other >> np.uint64(32), other & HALF
    middle, low = one_high * other_low + one_low * other_high, one_low * other_low
    whole = ((one_high * other_high) << np.uint64(3)) + (middle >> np.uint64(29))
    whole += ((middle & np.uint64(2**29 - 1)) << np.uint64(32)) + (low >> np.uint64(61)) + (low & PRIME)
    return (whole & PRIME) + (whole >> np.uint64(61))


@inlined
def hashed(data, at, length, keys):
    """A keyed hash of a string, of which nobody can choose many alike: where to look, and never who is equal."""
    return sum_of_products(data, at, length, keys) + length if length <= CHUNK else hashed_by_chunks(data, at, length, keys)


@inlined
def hashed_by_chunks(data, at, length, keys):
    """The same of more than a chunk: a polynomial of the chunks' sums, at a random place."""
    whole, done = length & PRIME, np.uint64(0)
    while done < length:
        part = sum_of_products(data, at + done, min(length - done, CHUNK), keys)
        for half in (part >> np.uint64(32), part & HALF):
            whole = times(whole, keys[PLACE]) + half
            whole = (whole & PRIME) + (whole >> np.uint64(61))
        done += CHUNK
    return whole


@inlined
def spread(value, factor, bits):
    """So many bits of a hash: different hashes share them with a chance of at most 2 / 2**bits, over the factors."""
    return ((value * factor) >> np.uint64(1)) >> np.uint64(63 - bits)


@compiled
def count_names(offsets, data, missing, keys, bits, parts, counts):
    """Find the part of each string, and count the rows of each part, and the words that their strings take."""
    for row in range(parts.size):
        first = np.uint64(offsets[row])
        length = np.uint64(offsets[row + 1]) - first
        if missing.size > 0 and missing[row]:
            length = np.uint64(0)
        part = spread(hashed(data, first, length, keys), keys[PARTS], bits)
        parts[row] = part
        counts[0, part] += 1
        counts[1, part] += (length + np.uint64(7)) >> EIGHTH


@compiled
def targets_of_names(parts, places, ends, nowhere, targets):
    """As `targets_of`, of parts that were found before."""
    for row in range(parts.size):
        part, there = parts[row], places[row] > 0
        targets[row] = ends[part] if there else nowhere
        ends[part] += there


@compiled
def send_names(offsets, data, missing, parts, places, targets, ends, lengths, words):
    """Write the length of each row's string to its target, and its bytes behind those of its part."""
    for row in range(parts.size):
        if places[row] == 0:
            continue
        first = np.uint64(offsets[row])
        length = np.uint64(offsets[row + 1]) - first
        if missing.size > 0 and missing[row]:
            lengths[targets[row]] = NO_NAME
            continue
        lengths[targets[row]] = np.uint32(length)
        end = ends[parts[row]]
        for word in range((length + np.uint64(7)) >> EIGHTH):
            done = np.uint64(word) << EIGHTH
            words[end + word] = word_at(data, first + done, length - done)
        ends[parts[row]] = end + np.int64((length + np.uint64(7)) >> EIGHTH)


@compiled
def number_names(chosen, starts, starts_of_words, rows, places, words, keys, names):
    """Number the strings of each part from 0 on: `names` has their lengths, and then their numbers. The most of a part.

    Rows and words begin where `starts` say, of each part and of each thread that sent there. Strings with one hash are
    compared byte by byte, so that each has its own number.
    """
    slots = 1
    while slots < rows:
        slots *= 2
    heads, following = np.empty(slots, np.uint32), np.empty(rows, np.uint32)
    first_of, length_of = np.empty(rows, np.int64), np.empty(rows, np.uint32)
    most = np.int64(0)
    for part in range(chosen[0], starts.shape[0] - 1, chosen[1]):
        size, bits = starts[part + 1, 0] - starts[part, 0], 0
        while (1 << bits) < size:
            bits += 1
        heads[: 1 << bits] = NO_NAME
        known = np.int64(0)
        for thread in range(starts.shape[1]):
            at = starts_of_words[part, thread]
            until = starts[part, thread + 1] if thread + 1 < starts.shape[1] else starts[part + 1, 0]
            for row in range(starts[part, thread], until):
                if places[row] == 0:
                    continue
                length = names[row]
                of_bytes = np.uint64(0) if length == NO_NAME else np.uint64(length)
                slot = spread(hashed(words, np.uint64(at) << EIGHTH, of_bytes, keys), keys[SLOTS], bits)
                number = heads[slot]
                while number != NO_NAME and not alike(words, at, first_of[number], length, length_of[number]):
                    number = following[number]
                if number == NO_NAME:
                    number = np.uint32(known)
                    first_of[known], length_of[known], following[known] = at, length, heads[slot]
                    heads[slot] = number
                    known += 1
                names[row] = number
                at += np.int64((of_bytes + np.uint64(7)) >> EIGHTH)
        most = max(most, known)
    return most


@inlined
def alike(words, one, other, length, other_length):
    """Tell whether two strings are the same: by their lengths, and by all of their bytes."""
    if length != other_length:
        return False
    if length != NO_NAME:
        for word in range((np.int64(length) + 7) >> 3):
            if words[one + word] != words[other + word]:
                return False
    return True


def compile_all() -> None:
    """Run each kernel on a row or none, of the types that it is used with: what is compiled is kept on disk."""
    one, two, keys = np.zeros(1, np.int64), np.zeros(2, np.int64), np.zeros(KEYS, np.uint64)
    data, missing, parts = np.zeros(8, np.uint8), np.zeros(0, np.bool_), np.zeros(1, np.uint16)
    for column in (two, data, missing):
        column.flags.writeable = False
    ends, places, numbers, words = one.copy(), np.ones(1, np.uint32), np.zeros(1, np.uint32), np.zeros(2, np.uint64)
    count_names(two, data, missing, keys, 0, parts, np.zeros((2, 1), np.int64))
    targets_of_names(parts, places, ends, 0, one)
    send_names(two, data, missing, parts, places, one, ends, numbers, words)
    starts = np.array([[0], [1]])
    number_names((0, 1), starts, starts, 1, places, words, keys, numbers)
