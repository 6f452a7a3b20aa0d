// The logos of connections: drawn for this project, served by this server, one for every strategy.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readAssets } from '../../src/capabilities/pages/assets.ts';
import { markOf } from '../../src/features/connections/marks.ts';
import { STRATEGIES } from '../../src/records/connections/connections.ts';
import { createAgent } from '../support/agent.ts';
import { tenant } from '../support/flows.ts';
import { startServer } from '../support/server.ts';

const ASSETS = new URL('../../views/assets/', import.meta.url).pathname;
const files = readdirSync(join(ASSETS, 'marks'));
const GENERIC = 'marks/connection.svg';

describe('the logos of connections', () => {
  const { path } = readAssets(ASSETS);

  it('exist for every strategy, built in or not', () => {
    for (const strategy of [
      ...Object.keys(STRATEGIES),
      'google-oauth2',
      'apple',
      'okta',
      'waad',
      'samlp',
      'oidc',
    ])
      expect(() => path(markOf(strategy))).not.to.throw();
    expect(markOf('not-built-in')).to.equal(GENERIC);
    expect(markOf('../mark')).to.equal(GENERIC);
    expect(markOf('constructor')).to.equal(GENERIC);
    expect(markOf('windowslive')).to.equal('marks/microsoft.svg');
  });

  it('are all used by some strategy', () => {
    const names = files.map((file) => file.replace('.svg', ''));
    const shared = ['google-oauth2', 'windowslive', 'samlp', 'ad', 'any'].map(markOf);
    const unused = names.filter((name) => ![markOf(name), ...shared].includes(`marks/${name}.svg`));
    expect(unused).to.deep.equal([]);
  });

  for (const file of files)
    it(`are small SVG files without scripts or external references: ${file}`, () => {
      const text = readFileSync(join(ASSETS, 'marks', file), 'utf8');
      expect(text.length).to.be.below(1000);
      expect(text).to.match(
        /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" viewBox="0 0 24 24"><title>[\w ]+<\/title>/,
      );
      const elements = new Set([...text.matchAll(/<([^/\s>]+)/g)].map(([, name]) => name));
      expect([...elements]).to.satisfy((all: string[]) =>
        all.every((name) => ['svg', 'title', 'rect', 'g', 'path', 'circle'].includes(name)),
      );
      expect(text).not.to.match(/href|url\(|\bon\w+=/);
    });

  it('are served as immutable images', async () => {
    const server = await startServer({ tenant });
    try {
      const { status, headers } = await createAgent(server).get(path(markOf('github')));
      expect(status).to.equal(200);
      expect(headers['content-type']).to.equal('image/svg+xml');
      expect(headers['cache-control']).to.contain('immutable');
      expect((await createAgent(server).get('/assets/marks/')).status).to.equal(404);
    } finally {
      await server.stop();
    }
  });
});
