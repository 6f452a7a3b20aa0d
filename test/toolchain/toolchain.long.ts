// The published tools that manage a tenant, of other languages than ours: each manages applications, connections, users
// and organizations of a running server. Those in Node.js are in test/management/published-clients.test.ts and
// deploy.test.ts. With RECORD=1 what was seen is written to record.json, from which docs/do/tool-chain.md is made.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { expect } from 'chai';
import { ADMIN, startManaged } from '../management/support.ts';
import type { TestServer } from '../support/server.ts';
import { Missing, type Outcome, scratchBelow, TOOLS } from './tools.ts';

const RECORD = new URL('record.json', import.meta.url);
/** What each tool is refused, with the status. */
const REFUSED: Readonly<Record<string, readonly RegExp[]>> = {
  'auth0-python': [/second connection.*409/, /deleted application.*404/],
  'go-auth0': [/second connection.*409/, /deleted application.*404/],
  'com.auth0:auth0': [/second connection.*409/, /deleted application.*404/],
  'auth0 (Ruby)': [/second connection.*409/, /deleted application.*404/],
  'terraform-provider-auth0': [/root key.*400/],
  'auth0-cli': [],
};

describe('a tool that manages a tenant', () => {
  let server: TestServer;
  let scratch: string;
  before(async () => {
    scratch = scratchBelow(tmpdir());
    server = await startManaged();
  });
  after(async () => {
    await server.stop();
    rmSync(scratch, { recursive: true, force: true });
  });

  for (const { name, run } of TOOLS)
    it(`works unmodified: ${name}`, async function () {
      this.timeout(1_200_000);
      const outcome = await run({
        domain: new URL(server.url).host,
        clientId: ADMIN.client_id,
        clientSecret: ADMIN.client_secret,
        caFile: server.caFile,
        scratch,
      }).catch((thrown: unknown) => {
        if (!(thrown instanceof Missing)) throw thrown;
        process.stdout.write(`      not tried: ${name} ${thrown.message}\n`);
        return this.skip();
      });
      expect(outcome.version).not.to.equal('');
      expect(outcome.steps.length).to.be.above(2);
      const refusals = REFUSED[name] ?? [];
      expect(outcome.refused).to.have.length(refusals.length);
      for (const [at, refusal] of refusals.entries()) expect(outcome.refused[at]).to.match(refusal);
      if (process.env.RECORD === '1') record(name, outcome);
    });
});

function record(name: string, { version, steps, refused }: Outcome): void {
  const all = JSON.parse(readFileSync(RECORD, 'utf8')) as Record<string, object>;
  all[name] = { version, date: new Date().toISOString().slice(0, 10), steps, refused };
  writeFileSync(RECORD, `${JSON.stringify(all, null, 2)}\n`);
}
