"""How guarantees are printed: δ near 1, and infinite ε."""

import math

from feddep.privacy.accountant import Guarantee


def format_delta(guarantee: Guarantee) -> str:
    """δ with four significant digits; near 1 as ``1 − 2.5e-18``."""
    if guarantee.log_rest > math.log(1e-4):
        return f"{guarantee.delta:.4g}"
    if math.isinf(guarantee.log_rest):
        return "1"
    exponent = math.floor(guarantee.log_rest / math.log(10))  # 1 − δ itself may underflow
    digits, carry = f"{math.exp(guarantee.log_rest - exponent * math.log(10)):.1e}".split("e")
    return f"1 − {digits}e{exponent + int(carry)}"


def format_number(value: float) -> str:
    """Four significant digits, or ∞."""
    return f"{value:.4g}" if math.isfinite(value) else "∞"
