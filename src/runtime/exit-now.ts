// Ends the process when its threads do not.

/**
 * Ends the process at once. `process.exit` waits for all threads, and a thread that computes in a function of Node.js ends
 * only after that.
 */
export function exitNow(code: number): never {
  // The only way that keeps the exit code: execve(2) ends all threads. Windows has none.
  if (process.execve !== undefined && process.platform !== 'win32')
    process.execve(process.execPath, [process.execPath, '-e', `process.exit(${code})`], {});
  process.kill(process.pid, 'SIGKILL');
  process.exit(code);
}
