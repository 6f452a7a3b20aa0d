// How the connection that writes is set up.

/**
 * A commit is on disk when it returns (`synchronous=FULL` syncs the write-ahead log at each; `fullfsync` is what
 * that takes on macOS). Nothing needs a file descriptor later on: there are no temporary files. What is deleted is
 * overwritten: a secret that is gone is not to be read from the file.
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
