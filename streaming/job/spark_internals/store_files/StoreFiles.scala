package groupcoordinator

import java.io.{ByteArrayOutputStream, IOException}
import java.util.Arrays

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{
  FSDataInputStream, FSDataOutputStream, FileAlreadyExistsException, FileStatus, FileSystem, Path, PathFilter
}
import org.apache.hadoop.util.functional.FutureIO
import org.apache.spark.sql.execution.streaming.checkpointing.AbstractFileContextBasedCheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/**
 * The files of a checkpoint at s3a://. Each is written with one request under its own name, so it is there whole or not
 * at all. Of two queries that write the same batch, the store refuses the later one.
 *
 * A file is opened with what the last list of its folder told of it: S3A would ask the store once more for each of the
 * many files of a state, one after the other. If the file has changed since, the store refuses to send it.
 */
class StoreFiles(path: Path, configuration: Configuration)
    extends AbstractFileContextBasedCheckpointFileManager(path, configuration) {

  private val files: FileSystem = path.getFileSystem(configuration)

  @volatile private var listed = Map.empty[Path, FileStatus]

  override def list(path: Path, filter: PathFilter): Array[FileStatus] = {
    // All of them: Spark asks for the snapshots of a state, and then opens the files of changes.
    val found = super.list(path, (_: Path) => true)
    listed = found.map(status => status.getPath -> status).toMap
    found.filter(status => filter.accept(status.getPath))
  }

  override def open(path: Path): FSDataInputStream = listed.get(files.makeQualified(path)) match {
    case Some(status) => FutureIO.awaitFuture(files.openFile(path).withFileStatus(status).build())
    case None => super.open(path)
  }

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
