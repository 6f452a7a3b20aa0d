// Settings of protections and directories that are only stored for deploy tools.
import { expect } from 'chai';
import type { TestServer } from '../support/server.ts';
import { callsWith, type ManagementCall, managementToken, startManaged } from './support.ts';

describe('settings of protections and directories', () => {
  let server: TestServer;
  let call: ManagementCall;

  before(async () => {
    server = await startManaged();
    call = callsWith(server, await managementToken(server));
  });
  after(() => server.stop());

  it('stores no secret of a captcha provider', async () => {
    const path = '/attack-protection/captcha';
    const sent = {
      active_provider_id: 'recaptcha_enterprise',
      recaptcha_enterprise: { site_key: 'site', api_key: 'sesame-open-1', project_id: 'project' },
      arkose: { site_key: 'site', secret: 'sesame-open-2', fail_open: true },
    };
    const set = await call('PATCH', path, sent);
    expect(set.json()).to.deep.include({
      active_provider_id: 'recaptcha_enterprise',
      simple_captcha: {},
      recaptcha_enterprise: { site_key: 'site', project_id: 'project' },
      arkose: { site_key: 'site', fail_open: true },
    });
    expect((await call('GET', path)).json()).to.deep.equal(set.json());
    expect(JSON.stringify(await server.store.collection('tenant').get('tenant'))).to.not.include('sesame');
    expect((await call('GET', '/logs')).text).to.not.include('sesame');
  });

  it('rejects unknown settings and invalid values', async () => {
    for (const [path, body] of [
      ['captcha', { active_provider_id: 'none' }],
      ['captcha', { hcaptcha: { site_key: 'site' } }],
      ['captcha', { other: true }],
      ['bot-detection', { bot_detection_level: 'extreme' }],
      ['bot-detection', { allowlist: ['no address'] }],
      ['bot-detection', { other: true }],
    ] as const)
      expect((await call('PATCH', `/attack-protection/${path}`, body)).status, path).to.equal(400);
    const set = await call('PATCH', '/attack-protection/bot-detection', { allowlist: ['192.0.2.0/24'] });
    expect(set.json()).to.deep.include({ allowlist: ['192.0.2.0/24'], bot_detection_level: 'medium' });
  });

  it('returns the default mapping of a directory, and keeps the selected groups', async () => {
    const options = { client_id: 'id', client_secret: 'a secret', domain: 'example.test' };
    const made = await call('POST', '/connections', { name: 'workspace', strategy: 'google-apps', options });
    expect(made.status, made.text).to.equal(201);
    const path = `/connections/${made.json().id}/directory-provisioning`;
    const groups = `${path}/synchronized-groups`;
    expect((await call('GET', path)).status).to.equal(404);
    expect((await call('GET', groups)).status).to.equal(404);
    expect((await call('POST', groups, { groups: [{ id: 'a' }] })).status).to.equal(404);
    const { mapping, ...rest } = (await call('POST', path, {})).json();
    expect(rest).to.include({ strategy: 'google-apps', synchronize_groups: 'off' });
    expect(mapping).to.deep.include.members([
      { idp: 'id', auth0: 'app_metadata.external_id' },
      { idp: 'name.fullName', auth0: 'name' },
    ]);
    const engineers = { id: 'b', name: 'Engineering', email: 'engineering@example.test' };
    expect((await call('POST', groups, { groups: [{ id: 'a' }, engineers] })).status).to.equal(204);
    expect((await call('POST', groups, { groups: [{ id: 'a' }] })).status).to.equal(204);
    const read = async (query = '') => (await call('GET', `${groups}${query}`)).json();
    expect((await read()).groups).to.have.deep.members([{ id: 'a' }, engineers]);
    expect(await read('?q=name:eng*')).to.deep.equal({ groups: [engineers] });
    expect(await read('?q=name:eng')).to.deep.equal({ groups: [] });
    expect((await call('GET', `${groups}?q=other:x`)).status).to.equal(400);
    expect((await call('GET', path)).json()).to.not.have.property('groups');
    expect((await call('DELETE', groups, { groups: [{ id: 'b' }] })).status).to.equal(204);
    expect(await read()).to.deep.equal({ groups: [{ id: 'a' }] });
    expect((await call('POST', groups, { groups: [{ id: 'a', email: '' }] })).status).to.equal(400);
    expect((await call('PUT', groups, { groups: [] })).status).to.equal(204);
    expect(await read()).to.deep.equal({ groups: [] });
    expect((await call('PUT', groups, { groups: [{ id: 'c' }] })).status).to.equal(204);
    expect(await read()).to.deep.equal({ groups: [{ id: 'c' }] });
    const many = { groups: Array.from({ length: 100 }, (_, n) => ({ id: `g${n}` })) };
    expect((await call('POST', groups, many)).status).to.equal(204);
    expect((await call('POST', groups, { groups: [...many.groups, { id: 'x' }] })).status).to.equal(400);
  });

  it('keeps groups that are selected while the settings of a directory are changed', async () => {
    const options = { client_id: 'id', client_secret: 'a secret', domain: 'race.example.test' };
    const made = await call('POST', '/connections', { name: 'race', strategy: 'google-apps', options });
    const path = `/connections/${made.json().id}/directory-provisioning`;
    await call('POST', path, {});
    const groups = `${path}/synchronized-groups`;
    const ids = Array.from({ length: 10 }, (_, n) => `g${n}`);
    for (const id of ids) {
      const body = { synchronize_automatically: true };
      const changes = [call('PATCH', path, body), call('POST', groups, { groups: [{ id }] })];
      for (const { status } of await Promise.all([...changes, call('PATCH', path, body)]))
        expect(status).to.be.within(200, 204);
    }
    const kept = (await call('GET', groups)).json().groups as { id: string }[];
    expect(kept.map(({ id }) => id)).to.have.members(ids);
  });
});
