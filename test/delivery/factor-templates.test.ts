// The templates of text messages for a second factor, set with the Management API.
import { expect } from 'chai';
import { loadTenantFile } from '../../src/tenant/load.ts';
import { managed } from '../actions/support.ts';
import { callsOf, tenant } from '../factors/tenant.ts';
import { startManaged } from '../management/support.ts';
import { nextMessageTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';
import { tenantFolder } from '../support/tenant-folder.ts';

describe('templates of text messages for a second factor', () => {
  let server: TestServer;
  let people = 0;
  before(async () => {
    server = await startManaged(tenant);
  });
  after(() => server.stop());

  const put = (of: string, enrollment_message: string, verification_message: string) =>
    managed(server, 'PUT', `/guardian/factors/${of}/templates`, { enrollment_message, verification_message });
  /** Returns what a user is sent who enrols a phone, and is then asked for its code. */
  const texts = async (at: TestServer = server) => {
    const calls = callsOf(at);
    const email = `mfa-${++people}@example.test`;
    const phone_number = `+1650555${String(2_000 + people)}`;
    const sent = async (count: number) => {
      const { text, code = '' } = await nextMessageTo(at, phone_number, count);
      return { code, text: text.replace(code, 'CODE') };
    };
    const mfa_token = await calls.mfaToken(email);
    const started = await calls.associate(mfa_token, {
      authenticator_types: ['oob'],
      oob_channels: ['sms'],
      phone_number,
    });
    const first = await sent(1);
    const { oob_code } = started.json();
    const done = await calls.verify('oob', { mfa_token, oob_code, binding_code: first.code });
    expect(done.status, done.text).to.equal(200);
    const challenged = await calls.challenge({
      mfa_token: await calls.mfaToken(email),
      challenge_type: 'oob',
    });
    expect(challenged.status, challenged.text).to.equal(200);
    return [first.text, (await sent(2)).text];
  };

  it('apply from the next message on, one for the first message and one for all later ones', async () => {
    const usual = await texts();
    expect(usual[0]).to.contain('CODE');
    const answer = await put(
      'sms',
      '{{code}} enrols you at {{tenant.friendly_name}}',
      '{{ code }} lets you in at {{tenant.friendlyName}}',
    );
    expect(answer.status).to.equal(200);
    expect(await texts()).to.deep.equal([
      'CODE enrols you at Test tenant',
      'CODE lets you in at Test tenant',
    ]);
  });

  it('that are broken or lack the code are replaced by ours, because nobody could log in with them', async () => {
    await put('sms', '{% if %}{{code}}', 'Welcome to {{tenant.friendly_name}}');
    for (const text of await texts()) expect(text).to.contain('CODE').and.not.contain('Welcome');
  });

  it('are read from a folder of the deploy tool', async () => {
    const folder = await tenantFolder();
    try {
      await folder.write('guardian/templates/sms.json', {
        name: 'sms',
        enrollment_message: '{{code}} of a file',
        verification_message: '{{code}} of ${place}',
      });
      const { tenant: file } = await loadTenantFile(folder.path, {});
      const other = await startManaged({ ...tenant, guardianFactorTemplates: file.guardianFactorTemplates });
      try {
        expect(await texts(other)).to.deep.equal(['CODE of a file', 'CODE of ${place}']);
        const { body } = await managed(other, 'GET', '/guardian/factors/sms/templates');
        expect(body).to.deep.equal({
          enrollment_message: '{{code}} of a file',
          verification_message: '{{code}} of ${place}',
        });
      } finally {
        await other.stop();
      }
    } finally {
      await folder.remove();
    }
  });

  it('with the newer name take precedence over those with the older one', async () => {
    await put('sms', 'old {{code}}', 'old {{code}}');
    await put('phone', 'new {{code}}', 'newer {{code}}');
    expect(await texts()).to.deep.equal(['new CODE', 'newer CODE']);
  });
});
