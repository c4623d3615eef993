package org.apache.spark.sql.execution.streaming.state

import scala.collection.mutable
import scala.util.Random

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/**
 * Changes versions of the map at random, beside plain maps, and compares them. The argument is the number of rounds; each
 * has its number as its seed.
 */
object GroupMapCheck {
  private val Steps = 400
  private val Keys = 60
  private val Times = 50
  private val NoTimeout = -1L
  private val BatchTimeProperty = "group-coordinator.batch-time"

  private type Plain = Map[Long, (Int, Long)]

  /** Numbers whose rows have the same hash, in pairs. */
  private lazy val colliding: Seq[Long] = {
    val random = new Random(0)
    val first = mutable.HashMap.empty[Int, Long]
    Seq.fill(400000)(random.nextLong()).flatMap { number =>
      first.put(key(number).hashCode, number).toSeq.flatMap(other => Seq(other, number))
    }
  }

  def main(arguments: Array[String]): Unit = {
    require(colliding.nonEmpty, "no hashes collide")
    val rounds = arguments(0).toInt
    (1 to rounds).foreach(number => new Round(new Random(number)).play())
    large()
    println(s"$rounds rounds, ${colliding.size} keys whose hashes collide")
  }

  private class Round(random: Random) {
    private val keys = (colliding.take(20) ++ Seq.fill(Keys)(random.nextLong())).toIndexedSeq

    def play(): Unit = {
      var map = newMap()
      var plain: Plain = Map.empty
      val versions = mutable.ArrayBuffer.empty[(NoPrefixHDFSBackedStateStoreMap, Plain)]
      (1 to Steps).foreach { _ =>
        val number = keys(random.nextInt(keys.size))
        random.nextInt(20) match {
          case 0 =>
            versions += ((map, plain))
            val next = newMap()
            next.putAll(map)
            map = next
          case 1 =>
            val (others, content) = (newMap(), (random.nextInt(), random.nextInt(Times).toLong))
            others.put(key(number), row(content))
            map.putAll(others)
            plain += number -> content
          case 2 | 3 | 4 | 5 | 6 | 7 =>
            check(value(map.remove(key(number))), plain.get(number), "what remove returns")
            plain -= number
          case _ =>
            val content = (random.nextInt(), if (random.nextInt(4) == 0) NoTimeout else random.nextInt(Times).toLong)
            check(value(map.put(key(number), row(content))), plain.get(number), "what put returns")
            plain += number -> content
        }
        if (random.nextInt(20) == 0) compare(map, plain)
      }
      (versions :+ ((map, plain))).foreach { case (version, content) => compare(version, content) }
      plain.keys.foreach(number => map.remove(key(number)))
      compare(map, Map.empty)
      check(map.estimatedSize, 0L, "the size of nothing")
    }

    private def compare(map: NoPrefixHDFSBackedStateStoreMap, plain: Plain): Unit = {
      check(map.size(), plain.size, "the number of groups")
      keys.foreach(number => check(content(map.get(key(number))), plain.get(number), s"group $number"))
      val entries = map.entryIterator().map(entry => entry.getKey.getLong(0) -> value(entry.getValue).get).toSeq
      check(entries.size, plain.size, "the number of entries")
      check(entries.toMap, plain, "the entries")
      check(listed(map), plain, "the groups outside of a task")
      val time = random.nextInt(Times + 2).toLong
      val due = plain.filter { case (_, (_, timeout)) => timeout != NoTimeout && timeout < time }
      check(inTask("q", "7", s"q 7 $time")(listed(map)), due, s"the groups that are due at $time")
      check(inTask("q", "7", s"q 6 $time")(listed(map)), plain, "the groups with the time of another batch")
      check(inTask("q", "7", s"p 7 $time")(listed(map)), plain, "the groups with the time of another query")
      check(inTask("q", "7", null)(listed(map)), plain, "the groups without a time")
    }
  }

  /** More groups than a branch has places on two levels, and an iteration that goes on while they change. */
  private def large(): Unit = {
    val numbers = 0L until 20000L
    val map = newMap()
    numbers.foreach(number => map.put(key(number), row((number.toInt, number))))
    val iterator = map.entryIterator()
    val before = Seq.fill(10)(iterator.next().getKey.getLong(0))
    numbers.foreach(number => map.remove(key(number)))
    check((before ++ iterator.map(_.getKey.getLong(0))).sorted, numbers, "an iteration while all are removed")
    check(map.size(), 0, "the number of groups")
  }

  private def newMap() = new NoPrefixHDFSBackedStateStoreMap(None)

  private def listed(map: NoPrefixHDFSBackedStateStoreMap): Plain =
    map.iterator().map(pair => pair.key.getLong(0) -> content(pair.value).get).toMap

  private def inTask[T](query: String, batch: String, time: String)(body: => T): T = {
    val context = TaskContext.empty()
    val properties = Map("sql.streaming.queryId" -> query, "streaming.sql.batchId" -> batch, BatchTimeProperty -> time)
    properties.foreach { case (name, value) => if (value != null) context.getLocalProperties.setProperty(name, value) }
    TaskContext.setTaskContext(context)
    try body finally TaskContext.unset()
  }

  private def key(number: Long): UnsafeRow = {
    val row = UnsafeRow.createFromByteArray(16, 1)
    row.setLong(0, number)
    row
  }

  private def row(content: (Int, Long)): UnsafeRowWrapper = {
    val row = UnsafeRow.createFromByteArray(24, 2)
    row.setLong(0, content._1)
    row.setLong(1, content._2)
    StateStoreRow(row)
  }

  private def value(wrapper: UnsafeRowWrapper): Option[(Int, Long)] = Option(wrapper).flatMap(it => content(it.unsafeRow()))

  private def content(row: UnsafeRow): Option[(Int, Long)] = Option(row).map(it => (it.getLong(0).toInt, it.getLong(1)))

  private def check(found: Any, expected: Any, what: String): Unit =
    require(found == expected, s"$what: $found instead of $expected")
}
