import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'chai';

const MODULE = new URL('../../src/runtime/idle-memory.ts', import.meta.url).href;

/** Prints the heap size with unneeded objects, MB; and again when the heap has shrunk. */
const program = (begin: string) => `
  import { getHeapStatistics } from 'node:v8';
  import { shrinkHeapWhenIdle } from '${MODULE}';
  const size = () => getHeapStatistics().total_heap_size / 1e6;
  let kept = Array.from({ length: 400_000 }, (_, at) => ({ at, text: [at] }));
  const large = size();
  kept = undefined;
  ${begin};
  const watch = setInterval(() => {
    if (size() > large / 2) return;
    clearInterval(watch);
    console.log(JSON.stringify({ large, small: size(), exposed: typeof globalThis.gc }));
  }, 50);
`;

/** Prints the heap size before and after many objects with a short lifetime, MB. */
const BUSY = `
  import { getHeapStatistics } from 'node:v8';
  import { limitHeapGrowth } from '${MODULE}';
  const some = (count) => Array.from({ length: count }, (_, at) => ({ at, text: [at] }));
  const kept = some(300_000);
  const most = () => {
    const queue = [];
    let largest = 0;
    // V8 decides at each collection how large the heap may become.
    gc();
    for (let round = 0; round < 60; round++) {
      queue.push(some(40_000));
      if (queue.length > 5) queue.shift();
      largest = Math.max(largest, getHeapStatistics().used_heap_size / 1e6);
    }
    return largest;
  };
  const before = most();
  limitHeapGrowth();
  console.log(JSON.stringify({ before, after: most(), kept: kept.length }));
`;

describe('the memory of a busy process', () => {
  it('holds less garbage', () => {
    const args = ['--expose-gc', '--input-type=module', '-e', BUSY];
    const { before, after } = JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }));
    expect(after).to.be.below(before * 0.85);
  });
});

describe('the memory of a quiet process', () => {
  const isGivenBack = async (begin: string) => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', program(begin)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.on('data', (data) => {
      output += String(data);
    });
    const [code] = await once(child, 'close');
    expect(code).to.equal(0);
    const { large, small, exposed } = JSON.parse(output) as Record<string, unknown>;
    expect(small).to.be.below(Number(large) / 2);
    expect(exposed).to.equal('undefined');
  };

  it('is given back, and the function that does it stays hidden', () =>
    isGivenBack('shrinkHeapWhenIdle(100, 2 ** 30)'));
  it('is given back sooner after a start, even when requests followed it', () =>
    isGivenBack(`
      shrinkHeapWhenIdle(2 ** 30, 100);
      for (const end = Date.now() + 300; Date.now() < end; );
    `));
});
