// The settings of the connection that writes.

// docs/understand/decisions/store.md#deleted-records-are-overwritten
/**
 * A commit is on disk when it returns (`synchronous=FULL` syncs the write-ahead log at each commit; macOS also needs
 * `fullfsync`). There are no temporary files, so that nothing needs a file descriptor later. Deleted data is
 * overwritten, so that a deleted secret cannot be read from the file.
 */
export const commitPragmas = [
  'PRAGMA synchronous = FULL',
  'PRAGMA fullfsync = ON',
  'PRAGMA secure_delete = ON',
  'PRAGMA temp_store = MEMORY',
  'PRAGMA busy_timeout = 5000',
  'PRAGMA cache_size = -8192',
  'PRAGMA journal_size_limit = 67108864',
].join('; ');
