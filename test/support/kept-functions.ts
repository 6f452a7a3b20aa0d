// For a tool in a process of its own (`--import`): great functions that it makes of text (the deploy tool makes one of
// all its schemas, megabytes of it, each time that it checks something) are compiled once, and kept beside the compiled
// modules for the runs to come.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Script } from 'node:vm';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';

/** Shorter ones are compiled faster than they are looked up, characters. */
const GREAT = 100_000;

const { NODE_COMPILE_CACHE } = process.env;
const directory = NODE_COMPILE_CACHE && join(NODE_COMPILE_CACHE, 'functions');
const made = new Map<string, object>();

/** What `new Function(...names, body)` returns. */
function compile(names: string[], body: string, key: string): object {
  const file = directory && join(directory, key);
  const known = file && existsSync(file) ? { cachedData: zstdDecompressSync(readFileSync(file)) } : {};
  const script = new Script(`(function anonymous(${names.join(',')}\n) {\n${body}\n})`, known);
  if (file && script.cachedDataRejected !== false) {
    // At the end, when what was called is compiled, too.
    process.once('exit', () => {
      mkdirSync(directory, { recursive: true });
      writeFileSync(`${file}.${process.pid}`, zstdCompressSync(script.createCachedData()));
      renameSync(`${file}.${process.pid}`, file);
    });
  }
  return script.runInThisContext();
}

globalThis.Function = new Proxy(Function, {
  construct(target, given: string[]) {
    const [body = '', ...names] = given.toReversed();
    if (body.length < GREAT) return Reflect.construct(target, given);
    const key = createHash('sha256')
      .update(JSON.stringify([process.version, given]))
      .digest('hex');
    const known = made.get(key) ?? compile(names.toReversed(), body, key);
    made.set(key, known);
    return known;
  },
});
