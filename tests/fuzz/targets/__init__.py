"""What the fuzzer calls: each module has ``seeds``, the first inputs, and ``run``, which may raise for no input."""
