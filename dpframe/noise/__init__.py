"""The only package that draws randomness: exact integer noise and exact choices from the operating system's bits."""

from dpframe.noise.random_bits import fresh_key, insecure_bits, is_secure, is_silent, nonce, stamp, trial, trial_of
from dpframe.noise.samplers import (
    LARGEST_SCALE,
    LARGEST_SHAPE,
    Floats,
    Integers,
    discrete_laplace,
    exponential_choice,
    permuted_choice,
    rounded_generalized_gaussian,
    scaled_gaussian,
    truncated_discrete_laplace,
    truncated_generalized_gaussian,
)

__all__ = [
    "LARGEST_SCALE",
    "LARGEST_SHAPE",
    "Floats",
    "Integers",
    "discrete_laplace",
    "exponential_choice",
    "fresh_key",
    "insecure_bits",
    "is_secure",
    "is_silent",
    "nonce",
    "permuted_choice",
    "rounded_generalized_gaussian",
    "scaled_gaussian",
    "stamp",
    "trial",
    "trial_of",
    "truncated_discrete_laplace",
    "truncated_generalized_gaussian",
]
