// The documents by which phones know the tenant's apps.
import { expect } from 'chai';
import { managed } from '../actions/support.ts';
import { startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import type { TestServer } from '../support/server.ts';

const FINGERPRINTS = [Array.from({ length: 32 }, () => 'AB').join(':')];
const MOBILE = {
  ios: { team_id: 'TEAM1', app_bundle_identifier: 'com.example.app' },
  android: { app_package_name: 'com.example.app', sha256_cert_fingerprints: FINGERPRINTS },
};

describe('the documents of mobile apps', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged({
      clients: [
        { client_id: 'app', name: 'App', app_type: 'native', mobile: MOBILE },
        {
          client_id: 'half',
          name: 'Half',
          mobile: { ios: { team_id: 'TEAM2' }, android: { app_package_name: 'x' } },
        },
        {
          client_id: 'third',
          name: 'Third',
          is_first_party: false,
          third_party_security_mode: 'permissive',
          mobile: MOBILE,
        },
        { client_id: 'none', name: 'None', mobile: null },
      ],
    });
  });
  after(() => server?.stop());
  const read = (path: string) => createAgent(server).get(path);

  for (const path of ['/apple-app-site-association', '/.well-known/apple-app-site-association'])
    it(`name the complete iOS apps of first parties: ${path}`, async () => {
      const answer = await read(path);
      expect(answer.headers['content-type']).to.match(/^application\/json/);
      expect(answer.json()).to.deep.equal({
        applinks: {
          apps: [],
          details: [{ appID: 'TEAM1.com.example.app', paths: ['/ios/com.example.app/*'] }],
        },
        webcredentials: { apps: ['TEAM1.com.example.app'] },
      });
    });

  it('name the complete Android apps of first parties', async () => {
    const answer = await read('/.well-known/assetlinks.json');
    expect(answer.headers['content-type']).to.match(/^application\/json/);
    expect(answer.json()).to.deep.equal([
      {
        relation: [
          'delegate_permission/common.handle_all_urls',
          'delegate_permission/common.get_login_creds',
        ],
        target: {
          namespace: 'android_app',
          package_name: 'com.example.app',
          sha256_cert_fingerprints: FINGERPRINTS,
        },
      },
    ]);
  });

  it('follow a change of the application at once', async () => {
    await managed(server, 'PATCH', '/clients/half', { mobile: { ios: { ...MOBILE.ios, team_id: 'TEAM2' } } });
    const { webcredentials } = (await read('/apple-app-site-association')).json();
    expect(webcredentials.apps).to.have.members(['TEAM1.com.example.app', 'TEAM2.com.example.app']);
  });
});
