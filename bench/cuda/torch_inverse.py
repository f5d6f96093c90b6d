"""Seconds that torch.linalg.inv_ex takes, for the pages that have it as a rival."""

ROUNDS = 3


def seconds(cases):
    """By case, which is (precision, n, matrices): of one call for random matrices on the GPU, the
    median. Empty where this Python has no torch, or torch no GPU."""
    try:
        import torch
    except ImportError:
        return {}
    if not torch.cuda.is_available():
        return {}
    found = {}
    for precision, n, count in cases:
        kind = torch.float64 if precision == "FP64" else torch.float32
        a = torch.rand(count, n, n, dtype=kind, device="cuda") * 2 - 1
        times = []
        for _ in range(1 + ROUNDS):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            torch.linalg.inv_ex(a)
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) / 1e3)
        found[precision, n, count] = sorted(times[1:])[ROUNDS // 2]
        del a
    return found
