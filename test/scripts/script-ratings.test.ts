// The record of scripts that may share a thread.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { createScriptRatings, scriptKey } from '../../src/capabilities/scripts/scripts.ts';
import type { JobOutcome } from '../../src/capabilities/scripts/threads.ts';

const MIB = 1024 * 1024;
const little = { result: 'null', used: { cpuMs: 1, memoryBytes: 1, requests: 1 } } as unknown as JobOutcome;
const script = (source: string, of = 'acme', entry = 'login') => scriptKey([{ of, entry, source }]);

describe('the record of light scripts', () => {
  it('knows each script by its source, its function and what it belongs to', () => {
    const light = createScriptRatings();
    for (let runs = 0; runs < 3; runs++) light.note(script('a b'), [little]);
    expect(light.has(script('a b'))).to.equal(true);
    for (const other of [script('a c'), script('b', 'acme', 'login a'), script('a b', 'acme login', '')])
      expect(light.has(other)).to.equal(false);
    light.refuse(script('a b'));
    expect(light.has(script('a b'))).to.equal(false);
  });

  it('does not keep the source of a script alive', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const used = () => {
      collect();
      return process.memoryUsage().heapUsed;
    };
    const light = createScriptRatings();
    const before = used();
    for (let one = 0; one < 60; one++) light.note(script(`/* ${one} */`.padEnd(MIB, ' ')), [little]);
    expect(used() - before).to.be.lessThan(20 * MIB);
    // The record must be alive until here.
    expect(light.has(script('another'))).to.equal(false);
  });
});
