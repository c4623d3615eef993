package org.apache.spark.sql.execution.streaming.state

import java.lang.Integer.bitCount
import java.util.Map.Entry

import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.plans.logical.ProcessingTimeTimeout
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}
import org.apache.spark.sql.execution.python.streaming.FlatMapGroupsInPandasWithStateExec
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter
import org.apache.spark.sql.execution.streaming.runtime.{MicroBatchExecution, StreamExecution}
import org.apache.spark.util.KnownSizeEstimation

/**
 * The groups of one version of a state: Spark's own class has this name, and this one is ahead of it on the class path.
 *
 * Spark makes a version for each batch by copying the one before, and looks at every group for a timeout that has
 * passed. Here the groups are in a hash trie that versions share, and each of its nodes knows the earliest timeout below
 * it. So a version costs nothing, and the groups whose timeout has passed are found without looking at the others.
 */
class NoPrefixHDFSBackedStateStoreMap(verifier: Option[KeyValueIntegrityVerifier])
    extends HDFSBackedStateStoreMap with KnownSizeEstimation {

  /** No node ever changes, so readers of any version need no lock. */
  @volatile private var content = Content.Empty

  override def size(): Int = content.size

  override def get(key: UnsafeRow): UnsafeRow =
    HDFSBackedStateStoreMap.getAndVerifyValueRow(key, Trie.valueOf(content.root, key), verifier)

  override def put(key: UnsafeRow, value: UnsafeRowWrapper): UnsafeRowWrapper = synchronized {
    val before = Trie.valueOf(content.root, key)
    content = content.changed(Trie.updated(content.root, 0, new Group(key, value)), key, before, value)
    before
  }

  override def remove(key: UnsafeRow): UnsafeRowWrapper = synchronized {
    val before = Trie.valueOf(content.root, key)
    if (before != null) content = content.changed(Trie.removed(content.root, 0, key.hashCode, key), key, before, null)
    before
  }

  override def putAll(other: HDFSBackedStateStoreMap): Unit = synchronized {
    other match {
      case same: NoPrefixHDFSBackedStateStoreMap if content.size == 0 => content = same.content
      case _ => other.entryIterator().foreach(entry => put(entry.getKey, entry.getValue))
    }
  }

  /** In a batch that calls the groups whose timeout has passed, these; the snapshots are made by `entryIterator`. */
  override def iterator(): Iterator[UnsafeRowPair] = {
    val pair = new UnsafeRowPair()
    new Groups(content.root, BatchTime.ofThisTask).map { group =>
      val value = HDFSBackedStateStoreMap.getAndVerifyValueRow(group.getKey, group.getValue, verifier)
      pair.withRows(group.getKey, value)
    }
  }

  override def entryIterator(): Iterator[Entry[UnsafeRow, UnsafeRowWrapper]] = new Groups(content.root, None)

  override def prefixScan(prefixKey: UnsafeRow): Iterator[UnsafeRowPair] =
    throw new UnsupportedOperationException("this map has no prefixes")

  /** Spark would look at every object, in every batch. */
  override def estimatedSize: Long = content.bytes
}

/** A trie with the number of its groups and their size. */
private class Content(val root: Node, val size: Int, val bytes: Long) {

  def changed(root: Node, key: UnsafeRow, before: UnsafeRowWrapper, after: UnsafeRowWrapper): Content = {
    val groups = (if (after == null) 0 else 1) - (if (before == null) 0 else 1)
    val growth = groups * (key.getSizeInBytes + Content.Overhead) + sizeOf(after) - sizeOf(before)
    new Content(root, size + groups, bytes + growth)
  }

  private def sizeOf(value: UnsafeRowWrapper): Long = if (value == null) 0L else value.unsafeRow().getSizeInBytes
}

private object Content {
  val Empty = new Content(null, 0, 0L)

  /** The objects of a group beside the bytes of its key and value, and its share of the nodes above it. */
  val Overhead = 200L
}

private sealed abstract class Node {

  /** The earliest timeout in it, ms since the epoch. */
  def earliest: Long
}

private final class Group(key: UnsafeRow, value: UnsafeRowWrapper) extends Node with Entry[UnsafeRow, UnsafeRowWrapper] {
  val hash: Int = key.hashCode
  override val earliest: Long = Trie.timeoutOf(value.unsafeRow())
  override def getKey: UnsafeRow = key
  override def getValue: UnsafeRowWrapper = value
  override def setValue(value: UnsafeRowWrapper): UnsafeRowWrapper = throw new UnsupportedOperationException()
}

/** What has no place of its own: groups whose hashes are the same. */
private final class Collision(val hash: Int, val groups: Array[Node]) extends Node {
  override val earliest: Long = Trie.earliestOf(groups)
}

/** Up to 32 nodes, in the order of their bits in `places`. */
private final class Branch(val places: Int, val nodes: Array[Node]) extends Node {
  override val earliest: Long = Trie.earliestOf(nodes)
}

private object Trie {
  private val BitsOfLevel = 5

  /** Of a group without a timeout. */
  private val Never = Long.MaxValue

  /** Spark's own value for that. */
  private val NoTimeout = -1L

  private val TimeoutColumn = 1
  private val Columns = 2

  /** The timeout in a row of Spark's `FlatMapGroupsWithStateExecHelper`; a row of another kind is always due. */
  def timeoutOf(row: UnsafeRow): Long =
    if (row.numFields != Columns || row.isNullAt(TimeoutColumn)) Long.MinValue
    else row.getLong(TimeoutColumn) match {
      case NoTimeout => Never
      case timeout => timeout
    }

  def earliestOf(nodes: Array[Node]): Long = {
    var earliest = Never
    var place = 0
    while (place < nodes.length) {
      earliest = math.min(earliest, nodes(place).earliest)
      place += 1
    }
    earliest
  }

  def valueOf(root: Node, key: UnsafeRow): UnsafeRowWrapper = {
    val hash = key.hashCode
    var node = root
    var level = 0
    while (node.isInstanceOf[Branch]) {
      val branch = node.asInstanceOf[Branch]
      val bit = bitOf(hash, level)
      node = if ((branch.places & bit) == 0) null else branch.nodes(placeOf(branch, bit))
      level += BitsOfLevel
    }
    node match {
      case group: Group if group.getKey == key => group.getValue
      case collision: Collision =>
        val at = placeIn(collision, key)
        if (at < 0) null else collision.groups(at).asInstanceOf[Group].getValue
      case _ => null
    }
  }

  def updated(node: Node, level: Int, group: Group): Node = node match {
    case null => group
    case branch: Branch =>
      val bit = bitOf(group.hash, level)
      val at = placeOf(branch, bit)
      if ((branch.places & bit) == 0) new Branch(branch.places | bit, inserted(branch.nodes, at, group))
      else new Branch(branch.places, replaced(branch.nodes, at, updated(branch.nodes(at), level + BitsOfLevel, group)))
    case other: Group =>
      if (other.hash != group.hash) together(other, other.hash, group, group.hash, level)
      else if (other.getKey == group.getKey) group
      else new Collision(group.hash, Array(other, group))
    case collision: Collision =>
      if (collision.hash != group.hash) together(collision, collision.hash, group, group.hash, level)
      else {
        val at = placeIn(collision, group.getKey)
        val groups = collision.groups
        new Collision(collision.hash, if (at < 0) inserted(groups, groups.length, group) else replaced(groups, at, group))
      }
  }

  /** The node without a key that is in it; null if nothing is left. */
  def removed(node: Node, level: Int, hash: Int, key: UnsafeRow): Node = node match {
    case branch: Branch =>
      val bit = bitOf(hash, level)
      val at = placeOf(branch, bit)
      val below = removed(branch.nodes(at), level + BitsOfLevel, hash, key)
      if (below != null) above(branch.places, replaced(branch.nodes, at, below))
      else if (branch.nodes.length == 1) null
      else above(branch.places & ~bit, without(branch.nodes, at))
    case collision: Collision =>
      val left = without(collision.groups, placeIn(collision, key))
      if (left.length == 1) left(0) else new Collision(hash, left)
    case _ => null
  }

  /** A branch with these nodes; one group alone needs none. */
  private def above(places: Int, nodes: Array[Node]): Node =
    if (nodes.length == 1 && !nodes(0).isInstanceOf[Branch]) nodes(0) else new Branch(places, nodes)

  private def together(one: Node, hash: Int, other: Node, otherHash: Int, level: Int): Node = {
    val (bit, otherBit) = (bitOf(hash, level), bitOf(otherHash, level))
    if (bit == otherBit) new Branch(bit, Array(together(one, hash, other, otherHash, level + BitsOfLevel)))
    else {
      val isFirst = Integer.compareUnsigned(bit, otherBit) < 0
      new Branch(bit | otherBit, if (isFirst) Array(one, other) else Array(other, one))
    }
  }

  private def bitOf(hash: Int, level: Int): Int = 1 << ((hash >>> level) & 31)

  private def placeOf(branch: Branch, bit: Int): Int = bitCount(branch.places & (bit - 1))

  private def placeIn(collision: Collision, key: UnsafeRow): Int =
    collision.groups.indexWhere(_.asInstanceOf[Group].getKey == key)

  private def inserted(nodes: Array[Node], at: Int, node: Node): Array[Node] = {
    val result = new Array[Node](nodes.length + 1)
    System.arraycopy(nodes, 0, result, 0, at)
    result(at) = node
    System.arraycopy(nodes, at, result, at + 1, nodes.length - at)
    result
  }

  private def replaced(nodes: Array[Node], at: Int, node: Node): Array[Node] = {
    val result = nodes.clone()
    result(at) = node
    result
  }

  private def without(nodes: Array[Node], at: Int): Array[Node] = {
    val result = new Array[Node](nodes.length - 1)
    System.arraycopy(nodes, 0, result, 0, at)
    System.arraycopy(nodes, at + 1, result, at, nodes.length - at - 1)
    result
  }
}

/** The groups below a node: all, or those whose timeout is before a time, ms since the epoch. */
private class Groups(root: Node, before: Option[Long]) extends Iterator[Group] {
  private val isAll = before.isEmpty
  private val time = before.getOrElse(0L)
  private var waiting: List[Node] = if (root == null) Nil else List(root)
  private var following: Group = advanced()

  override def hasNext: Boolean = following != null

  override def next(): Group = {
    if (following == null) throw new NoSuchElementException()
    val group = following
    following = advanced()
    group
  }

  private def advanced(): Group = {
    var found: Group = null
    while (found == null && waiting.nonEmpty) {
      val node = waiting.head
      waiting = waiting.tail
      if (isAll || node.earliest < time) node match {
        case group: Group => found = group
        case branch: Branch => branch.nodes.foreach(each => waiting ::= each)
        case collision: Collision => collision.groups.foreach(each => waiting ::= each)
      }
    }
    found
  }
}

/**
 * Tells the tasks of a batch its time. The plan has it, but not the state; a property of the driver's thread carries it.
 *
 * It is an extension of a session: Spark calls the rule with the plan of each batch, which stays as it is.
 */
class BatchTime extends (SparkSessionExtensions => Unit) {

  override def apply(extensions: SparkSessionExtensions): Unit =
    extensions.injectColumnar { session =>
      new ColumnarRule {
        override def preColumnarTransitions: Rule[SparkPlan] = new Rule[SparkPlan] {
          override def apply(plan: SparkPlan): SparkPlan = {
            BatchTime.note(session.sparkContext, plan)
            plan
          }
        }
      }
    }
}

private object BatchTime {
  private val Property = "group-coordinator.batch-time"

  /** Keep the time for the tasks of this thread's batch, if all that they ask a state for is whose timeout has passed. */
  def note(context: SparkContext, plan: SparkPlan): Unit = {
    val time = plan.collect { case operator: StateStoreWriter => operator } match {
      case Seq(operator: FlatMapGroupsInPandasWithStateExec) if operator.timeoutConf == ProcessingTimeTimeout =>
        operator.batchTimestampMs
      case _ => None
    }
    context.setLocalProperty(Property, time.map(batch(context.getLocalProperty) + _).orNull)
  }

  /** The time of the batch that this task is part of, ms since the epoch; None outside of such a batch. */
  def ofThisTask: Option[Long] = for {
    context <- Option(TaskContext.get())
    property <- Option(context.getLocalProperty(Property))
    time <- property.stripPrefix(batch(context.getLocalProperty)).toLongOption
  } yield time

  /** So the time of one batch cannot count for another. */
  private def batch(property: String => String): String =
    s"${property(StreamExecution.QUERY_ID_KEY)} ${property(MicroBatchExecution.BATCH_ID_KEY)} "
}
