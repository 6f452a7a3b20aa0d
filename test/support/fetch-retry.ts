// For a tool in a process of its own (`--import`): servers close connections that are not used for five seconds, and on a
// loaded machine the tool stands still for longer between two requests, so that it writes to one that is closed. Nobody
// has read that request: it is sent again, once. Of another fault the tool would say "fetch failed" alone.
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
