// For a tool in a separate process (`--import`). Servers close connections that are idle for five seconds; on a busy
// machine the tool pauses for longer than that between requests, and then writes to a closed connection. The server has
// not read such a request, so it is sent again, once. Other errors are printed, because the tool would only say "fetch
// failed".
const ask = globalThis.fetch;

globalThis.fetch = async (input, init) => {
  try {
    return await ask(input, init);
  } catch (thrown) {
    const { cause } = thrown as Error & { cause?: Error & { code?: string } };
    if (cause?.message === 'other side closed') return ask(input, init);
    process.stderr.write(`fetch failed: ${cause?.code ?? ''} ${cause?.message}\n`);
    throw thrown;
  }
};
