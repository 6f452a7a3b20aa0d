// npm packages in a folder of the operator that actions require; nothing outside of that folder is read.
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { createPackages } from '../../src/capabilities/scripts/packages/packages.ts';
import { startSandbox } from './support.ts';

describe('packages of actions', () => {
  const sandbox = startSandbox();
  /** For packages that never finish. */
  const hasty = startSandbox({ limits: { cpuMs: 200 } });
  let folder: string;
  let directory: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gatehouse-packages-'));
    directory = join(folder, 'modules', 'node_modules');
    await mkdir(directory, { recursive: true });
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));
  after(() => Promise.all([sandbox.stop(), hasty.stop()]));

  const put = async (files: Record<string, string>) => {
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(directory, path)), { recursive: true });
      await writeFile(join(directory, path), text);
    }
  };
  const packages = ({ scripts } = sandbox) => createPackages({ directory, scripts });
  const names = (code: string) =>
    [...code.matchAll(/require\('((?:@[^/']+\/)?[^/']+)/g)].map(([, name = '']) => name);
  /** Returns what an action's code answers, with its packages listed. */
  const run = async (code: string, dependencies = names(code)): Promise<unknown> => {
    const files = await packages().filesOf({ name: 'test', code: `async () => {${code}}`, dependencies });
    return sandbox.result(code, { files });
  };
  const faultOf = (code: string, dependencies = names(code), by = sandbox) =>
    packages(by).faultOf({ name: 'test', code, dependencies });

  it('may be CommonJS, with files and packages of their own', async () => {
    await put({
      'plain/package.json': '{ "main": "./lib" }',
      'plain/lib/index.js': `const own = require('./own'); exports.said = [own, require('other').name, require('../data.json').a, __filename, typeof process.env.NODE_ENV];`,
      'plain/lib/own.js': `module.exports = 'own';`,
      'plain/data.json': '{ "a": 1 }',
      'plain/node_modules/other/index.js': `exports.name = 'nested';`,
      'plain/node_modules/other/package.json': '{}',
      'other/package.json': '{}',
      'other/index.js': `exports.name = 'outer';`,
    });
    const said = await run(
      `return [require('plain').said, require('other@2.1.0').name, require('lodash').size('ab')];`,
      ['plain', 'other', 'lodash'],
    );
    expect(said).to.deep.equal([['own', 'nested', 1, '/plain/lib/index.js', 'string'], 'outer', 2]);
  });

  it('may be ECMAScript modules', async () => {
    await put({
      'esm/package.json':
        '{ "type": "module", "exports": { ".": { "node": "./no.js", "import": "./main.js" }, "./sub/*": "./parts/*.js", "./sub/*/deep": "./parts/b.js" } }',
      'esm/main.js': `#!/usr/bin/env node
        import fallback, { b as renamed } from './parts/b.js';
        import * as all from './parts/b.js';
        import common, { named } from 'common';
        export * from './parts/b.js';
        export { default as again } from './parts/b.js';
        export * as everything from './parts/b.js';
        export let count = 1;
        export const { x, y: [z] } = { x: 2, y: [3] };
        export function add() { count++; return renamed; }
        export class Thing {}
        export { all as gathered };
        export default class { said() { return [fallback(), common.named, named, import.meta.url]; } }
        export const late = () => import('./parts/b.js').then((m) => m.b);`,
      'esm/parts/b.js': `export default function () { return 'default'; }\nconst b = 'b';\nexport { b };`,
      'common/package.json': '{}',
      'common/index.js': `exports.named = 'n';`,
    });
    const said = await run(`const esm = require('esm'); esm.add();
      const { default: Main, count, x, z, b, again, everything, gathered, late } = esm;
      return [count, x, z, b, again(), everything.b, gathered.b, new Main().said(), await late(), require('esm/sub/b').b, require('esm/sub/any/deep').b, Object.keys(esm).length];`);
    expect(said).to.deep.equal([
      2,
      2,
      3,
      'b',
      'default',
      'b',
      'b',
      ['default', 'n', 'n', null],
      'b',
      'b',
      'b',
      11,
    ]);
  });

  it('include popular ones', async () => {
    for (const name of [
      'ms',
      'dayjs',
      'semver',
      'qs',
      'side-channel',
      'es-errors',
      'side-channel-list',
      'side-channel-map',
      'side-channel-weakmap',
      'object-inspect',
      'call-bound',
      'get-intrinsic',
      'call-bind-apply-helpers',
      'es-object-atoms',
      'es-define-property',
      'function-bind',
      'get-proto',
      'dunder-proto',
      'gopd',
      'has-symbols',
      'hasown',
      'math-intrinsics',
      'async-function',
      'async-generator-function',
      'generator-function',
      'validator',
      'zod',
      'dot-prop',
      'chalk',
      'ansi-styles',
      'supports-color',
      'uuid',
      'js-yaml',
      'argparse',
    ])
      await cp(join('node_modules', name), join(directory, name), { recursive: true });
    const said = await run(`
      const { z } = require('zod');
      return [require('ms')('2 days'), require('dayjs')('2026-01-31').add(1, 'day').format('YYYY-MM-DD'), require('semver').gt('1.10.0', '1.9.9'),
        require('qs').parse('a[b]=c'), require('validator').isEmail('a@example.test'), z.object({ a: z.string() }).safeParse({ a: 1 }).success,
        require('js-yaml').load('a: [1]'), require('uuid').v4().length];`);
    expect(said).to.deep.equal([
      172800000,
      '2026-02-01',
      true,
      { a: { b: 'c' } },
      true,
      false,
      { a: [1] },
      36,
    ]);
  });

  it('are named in the fault when they are missing or cannot be used in the sandbox', async () => {
    await put({
      'native/package.json': '{}',
      'native/index.js': `require('fs').readFileSync('/etc/passwd');`,
      'broken/package.json': '{}',
      'broken/index.js': 'syntax error',
      'bad/package.json': '{ no json',
      'addon/package.json': '{ "main": "./build/addon.node" }',
      'addon/build/addon.node': 'binary',
      'endless/package.json': '{}',
      'endless/index.js': 'for (;;);',
    });
    expect(await faultOf(`require('nothing')`)).to.equal(
      'the package nothing is not in modules/node_modules of the data directory',
    );
    expect(await faultOf(`require('native')`)).to.match(/native cannot be loaded: Cannot find module 'fs'/);
    expect(await faultOf(`require('broken')`)).to.match(/^broken\/index\.js cannot be read: .*\(1:7\)$/);
    expect(await faultOf(`require('bad')`)).to.equal('bad/package.json cannot be read');
    expect(await faultOf(`require('addon')`)).to.equal('addon/build/addon.node is no JavaScript');
    expect(await faultOf(`require('endless')`, ['endless'], hasty)).to.match(
      /endless cannot be loaded: it used the processor/,
    );
    // A module of the sandbox needs no package.
    expect(await faultOf(`require('axios')`)).to.equal(undefined);
    expect(
      await createPackages({ directory: join(folder, 'none'), scripts: sandbox.scripts }).faultOf({
        name: 'a',
        code: '',
        dependencies: ['x'],
      }),
    ).to.match(/^the package x is not/);
  });

  it('are never read from outside of the folder', async () => {
    await writeFile(join(folder, 'secret.js'), `module.exports = 'secret';`);
    await mkdir(join(folder, 'away'));
    await writeFile(join(folder, 'away', 'package.json'), '{}');
    await writeFile(join(folder, 'away', 'index.js'), `module.exports = 'secret';`);
    await symlink(join(folder, 'away'), join(directory, 'linked'));
    await put({
      'climber/package.json': '{ "main": "../../../secret.js" }',
      'climber/index.js': `module.exports = 1;`,
      'file-link/package.json': '{}',
      'upward/package.json': '{}',
      'upward/index.js': `module.exports = require('../../../secret.js');`,
      'exporter/package.json': '{ "exports": "./../../../secret.js" }',
      'absolute/package.json': '{}',
      'absolute/index.js': `module.exports = require('${join(folder, 'secret.js')}');`,
    });
    await symlink(join(folder, 'secret.js'), join(directory, 'file-link', 'index.js'));
    for (const name of ['linked', 'climber', 'file-link', 'upward', 'exporter']) {
      expect(await faultOf(`require('${name}')`), name).to.match(/ leads out of the folder$/);
    }
    expect(await faultOf(`require('absolute')`)).to.match(/cannot be loaded: Cannot find module/);
    for (const name of [
      '../../secret.js',
      '..',
      '.',
      '/etc/passwd',
      '@a/..',
      '__proto__',
      'x/../../../secret',
    ])
      expect(await faultOf('', [name]), name).to.match(/is not in modules/);
    const code = `require('../../secret.js'); require('./secret'); require('climber/../../../secret');`;
    const files = await packages().filesOf({ name: 'a', code: code, dependencies: ['axios'] });
    expect(files?.get('')?.links.size).to.equal(0);
  });

  it('may be links within the folder, as package managers make them', async () => {
    await put({
      '.store/a@1/node_modules/a/package.json': '{}',
      '.store/a@1/node_modules/a/index.js': `module.exports = 'a and ' + require('b');`,
      '.store/a@1/node_modules/b/package.json': '{}',
      '.store/a@1/node_modules/b/index.js': `module.exports = 'b';`,
    });
    await symlink('.store/a@1/node_modules/a', join(directory, 'a'));
    expect(await run(`return require('a');`)).to.equal('a and b');
  });

  it('are limited in size', async () => {
    await put({ 'large/package.json': '{}', 'large/index.js': `//${'x'.repeat(2 * 1024 * 1024)}` });
    expect(await faultOf(`require('large')`)).to.match(/larger than 2097152 bytes in 1000 files/);
    await put({
      'many/package.json': '{}',
      'many/index.js': Array.from({ length: 1100 }, (_, i) => `require('./f${i}.js');`).join(''),
      ...Object.fromEntries(Array.from({ length: 1100 }, (_, i) => [`many/f${i}.js`, ''])),
    });
    expect(await faultOf(`require('many')`)).to.match(/1000 files/);
  });

  it('are found in a script in time that is linear in its length', async () => {
    await put({ 'plain/package.json': '{ "main": "./index" }', 'plain/index.js': '' });
    const found = async (code: string) => [
      ...((await packages().filesFor(code))?.get('')?.links.keys() ?? []),
    ];
    const requires = `function () { require('plain@1.0.0'); require('${'a@'.repeat(500_000)}/'); }`;
    expect(await found(`${requires} ; ; `)).to.deep.equal(['plain']);
    expect(await found(`${requires}${';'.repeat(1_000_000)}x`)).to.deep.equal([]);
  });

  it('leave nothing behind for the next run, and have no access to Node', async () => {
    await put({
      'sticky/package.json': '{}',
      'sticky/index.js': `globalThis.seen = (globalThis.seen || 0) + 1; module.exports = [globalThis.seen, typeof process.binding, typeof process.mainModule, typeof require.resolve];`,
    });
    const code = `return [require('sticky'), require('sticky') === require('sticky')];`;
    for (let i = 0; i < 2; i++)
      expect(await run(code)).to.deep.equal([[1, 'undefined', 'undefined', 'undefined'], true]);
    const without = await sandbox.run(`async function (t, c) { return require('sticky'); }`);
    expect(without.failure?.message).to.match(/Cannot find module 'sticky'/);
  });
});
