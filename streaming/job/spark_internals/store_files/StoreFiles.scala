package groupcoordinator

import java.io.{ByteArrayOutputStream, IOException}
import java.util.Arrays

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataOutputStream, FileAlreadyExistsException, FileSystem, Path}
import org.apache.spark.sql.execution.streaming.checkpointing.AbstractFileContextBasedCheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/**
 * The files of a checkpoint at s3a://. Each is written with one request under its own name, so it is there whole or not
 * at all. Of two queries that write the same batch, the store refuses the later one.
 */
class StoreFiles(path: Path, configuration: Configuration)
    extends AbstractFileContextBasedCheckpointFileManager(path, configuration) {

  private val files: FileSystem = path.getFileSystem(configuration)

  override def createAtomic(path: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    if (overwriteIfPossible) new ReplacingStream(files.create(path, true)) else new CreatingStream(files, path)
}

/** A file that replaces a former one when it is closed. */
class ReplacingStream(output: FSDataOutputStream) extends CancellableFSDataOutputStream(output) {

  override def cancel(): Unit = output.abort()
}

/** A file that must not exist yet. Such files are small, and kept in memory until they are closed. */
class CreatingStream(files: FileSystem, path: Path, content: ByteArrayOutputStream)
    extends CancellableFSDataOutputStream(content) {

  def this(files: FileSystem, path: Path) = this(files, path, new ByteArrayOutputStream)

  private var isOpen = true

  override def close(): Unit = if (isOpen) {
    isOpen = false
    try create()
    catch {
      // The request is repeated if its answer is lost: then the file is there, and is this one.
      case failure: IOException => if (!isStored(failure)) throw new FileAlreadyExistsException(s"$path is there already")
    }
  }

  override def cancel(): Unit = isOpen = false

  private def create(): Unit = {
    // With this option, the request has the header If-None-Match: *
    val output = files.createFile(path).create().must("fs.option.create.conditional.overwrite", true).build()
    output.write(content.toByteArray)
    output.close()
  }

  private def isStored(failure: IOException): Boolean = {
    val stored = try files.open(path) catch { case _: IOException => throw failure }
    try Arrays.equals(stored.readAllBytes(), content.toByteArray) finally stored.close()
  }
}
