"""A real broker as judge: the same script of requests to its group coordinator and to ``coordinator_logic.step``.

``script`` is what is sent, ``generate`` makes random ones, ``lockstep`` plays one against both sides and compares,
``campaign`` plays many at a time, ``shrink`` makes a script that shows a difference small, ``conversation`` prints it.
"""
