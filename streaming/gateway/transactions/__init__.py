"""Offsets that are committed in a producer's transaction, and how they come to share its fate.

The transaction is the real coordinator's, the offsets are the group's, and nobody writes to both at once. What joins
the two is a *participation*: a line in the compacted topic ``group-transactions`` that says that a group has a part in
a transaction. It is there before the group gets any offsets of that transaction, and it stays until the group has been
told how the transaction ended. Nothing of this is kept in a gateway only, so any gateway can go on where another ended.

* **AddOffsetsToTxn** goes to the broker first. When it has taken the group into the transaction, the line is written,
  and then the client is answered. So a line proves that the broker has had such a transaction, of that producer id and
  epoch; and a client that was not answered asks again.
* **TxnOffsetCommit** becomes an event only with a line; without one the client is told what a broker tells it that
  verifies transactions (KIP-890, part 1).
* **EndTxn**: the intention is written to the lines, then the request goes to the broker, then the outcome goes as an
  event WriteTxnMarkers to every group, then the lines are erased, then the client is answered. Its next transaction
  cannot begin before. That the event is in the log is enough: whatever is asked of the group later stands behind it.
* **InitProducerId** may make the broker forget how the last transaction ended. So what is left of it is settled first;
  what the broker aborts because of this very request is settled when the producer asks again, as it is told to.
* **The settler** of every gateway looks at the lines that are left over, and asks the broker: the gateway may have been
  killed, or the broker may have aborted the transaction since it took too long.

Which transaction an outcome belongs to
---------------------------------------
With clients of transactions V1 (the gateway offers no others) all transactions of a producer have one producer id and
epoch, so neither tells two of them apart, and a gateway that was slow could tell a group of an end when the next
transaction is under way. Two rules exclude that:

* Every participation has an id of its own, which nobody else ever uses, and **the group knows the transaction by that
  id, in the place of the producer id**. An outcome that comes late, or twice, or from several gateways at once, ends
  what is pending under its id and nothing else. The same goes for offsets that come late: who has sent some looks
  afterwards whether the line is still that of an open transaction. If not, the settler ends once more what is pending
  under that id. Every end is written to the line before the group is told, so none is overlooked.
* The broker knows the time at which each transaction began (DescribeTransactions). The line holds it. A state that the
  broker tells is a state of this transaction only if the time is the same; so neither the end of the one before, told
  by a coordinator that does not know yet that it was replaced, nor that of a later one is taken for its own.

What the broker's state means
-----------------------------
For the line's own transaction, by the time of its beginning: PrepareCommit and CompleteCommit cannot become an abort
any more, nor PrepareAbort and CompleteAbort a commit; Ongoing leaves it open, whatever the line's intention, because
EndTxn may still come. When the epoch has moved on, the producer was fenced: by InitProducerId or since the transaction
took too long. Fencing aborts what is Ongoing, and writes that with an epoch which is higher already, and InitProducerId
adds one more. So an epoch that is higher by exactly one, in state Empty, says that nothing had to be aborted: the last
EndTxn counted, and its intention is in the line, since that was written first. In all other cases it was aborted.
Whoever decides reads the lines again *after* the broker has answered, so that no intention is overlooked.

What is not covered: a client that goes to the brokers directly in the middle of a transaction. And of a transactional
id that the broker does not know, or knows with another producer id, nothing can be found out: it counts as aborted when
its producer begins anew, or a day later.
"""
