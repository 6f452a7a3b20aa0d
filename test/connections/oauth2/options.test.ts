// The options of custom social connections are validated when they are written, not at the first login.
import { expect } from 'chai';
import { connectionSchema } from '../../../src/records/connections/connections.ts';
import { oauth2OptionsSchema } from '../../../src/records/connections/upstream.ts';

const options = {
  authorizationURL: 'https://idp.example.test/authorize',
  tokenURL: 'https://idp.example.test/token',
  client_id: 'ours',
};

/** Returns the paths of the invalid members of a connection. */
function faults(more: object, name = 'acme'): string[] {
  const connection = { name, strategy: 'oauth2', options: { ...options, ...more } };
  const { error } = connectionSchema.safeParse(connection);
  return (error?.issues ?? []).map(({ path }) => path.join('.'));
}

describe('the options of a custom social connection', () => {
  const taken: [string, object][] = [
    ['a scope as a text', { scope: 'a b' }],
    ['a scope as a list', { scope: ['a', 'b'] }],
    ['a loopback URL without TLS', { tokenURL: 'http://localhost:4000/token' }],
    [
      'null for an option that is not set',
      { client_secret: null, scope: null, scripts: { fetchUserProfile: null } },
    ],
    ['a script with a syntax error', { scripts: { fetchUserProfile: 'function( {' } }],
    ['a script of 102,400 characters', { scripts: { fetchUserProfile: 'x'.repeat(102_400) } }],
    ['an empty icon_url and logoutUrl', { icon_url: '', logoutUrl: '' }],
    ['unknown members', { strategy_version: 2, email: true }],
  ];
  for (const [what, more] of taken) {
    it(`accept ${what}`, () => {
      expect(faults(more)).to.deep.equal([]);
      expect(() => oauth2OptionsSchema.parse({ ...options, ...more })).not.to.throw();
    });
  }

  const refused: [string, object, string][] = [
    ['a client_id that is too long', { client_id: 'x'.repeat(129) }, 'client_id'],
    ['a secret that is too long', { client_secret: 'x'.repeat(1025) }, 'client_secret'],
    ['a URL without TLS', { tokenURL: 'http://idp.example.test/token' }, 'tokenURL'],
    ['a URL of another scheme', { authorizationURL: 'javascript:alert(1)' }, 'authorizationURL'],
    ['a relative URL', { authorizationURL: '/authorize' }, 'authorizationURL'],
    ['a URL with a user name', { tokenURL: 'https://a:b@idp.example.test/' }, 'tokenURL'],
    ['a URL with a fragment', { authorizationURL: 'https://idp.example.test/#/a' }, 'authorizationURL'],
    ['an icon without TLS', { icon_url: 'http://idp.example.test/i.svg' }, 'icon_url'],
    ['an icon that is a script', { icon_url: 'javascript:alert(1)' }, 'icon_url'],
    ['a logoutUrl without TLS', { logoutUrl: 'http://idp.example.test/out' }, 'logoutUrl'],
    ['a header with a line break', { customHeaders: { 'X-A': 'a\r\nX-B: b' } }, 'customHeaders.X-A'],
    ['a header with an invalid name', { customHeaders: { 'X A': 'a' } }, 'customHeaders.X A'],
    [
      'a header that the request sets itself',
      { customHeaders: { 'Content-Length': '1' } },
      'customHeaders.Content-Length',
    ],
    [
      'a script that is too long',
      { scripts: { fetchUserProfile: 'x'.repeat(102_401) } },
      'scripts.fetchUserProfile',
    ],
    ['a mapping to an object', { authParamsMap: { a: { b: 1 } } }, 'authParamsMap.a'],
    [
      'a parameter with both value and alias',
      { upstream_params: { a: { value: 'x', alias: 'y' } } },
      'upstream_params.a',
    ],
    [
      'an unknown set_user_root_attributes',
      { set_user_root_attributes: 'sometimes' },
      'set_user_root_attributes',
    ],
    ['a boolean option with a string', { pkce_enabled: 'yes' }, 'pkce_enabled'],
  ];
  for (const [what, more, at] of refused) {
    it(`reject ${what}`, () => {
      expect(faults(more)).to.deep.equal([`options.${at}`]);
    });
  }

  for (const name of ['-a', 'a-', 'a_b', 'a b', 'ä', 'a|b', '']) {
    it(`are rejected with the invalid connection name "${name}"`, () => {
      expect(faults({}, name)).to.deep.equal(['name']);
    });
  }
});
