// The members of `api` and `event` that are published for each trigger, as a list of our own. A published method that is
// missing would end the login of every user.
import { expect } from 'chai';
import { startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { API, PASSWORD_REQUEST, payload, tenant } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { bindActions, managed } from './support.ts';

const CACHE = 'cache.delete cache.get cache.set';
const METADATA = 'user.setAppMetadata user.setUserMetadata';
const CHALLENGES = 'authentication.challengeWith authentication.challengeWithAny';
const DELIVERY = `${CACHE} notification.drop notification.retry`;
const REDIRECT = 'redirect.encodeToken redirect.sendUserTo redirect.validateToken';

/** The methods by trigger. `authentication.recordMethod` is for an action that continues after its redirect. */
const METHODS: Record<string, string> = {
  'post-login': `${CACHE} ${METADATA} ${CHALLENGES} ${REDIRECT} access.deny accessToken.addScope
    accessToken.removeScope accessToken.setCustomClaim authentication.enrollWith authentication.enrollWithAny
    authentication.setPrimaryUser groups.getUserGroups groups.hasGroupMembership idToken.setCustomClaim
    multifactor.enable prompt.render redirect.canRedirect refreshToken.deleteMetadata refreshToken.evictMetadata
    refreshToken.revoke refreshToken.setExpiresAt refreshToken.setIdleExpiresAt refreshToken.setMetadata
    roles.getUserEffectiveRoles roles.getUserEffectiveRolesByIds roles.getUserEffectiveRolesByNames
    rules.wasExecuted samlResponse.setAttribute samlResponse.setAudience samlResponse.setAuthnContextClassRef
    samlResponse.setCert samlResponse.setCreateUpnClaim samlResponse.setDestination samlResponse.setDigestAlgorithm
    samlResponse.setEncryptionAlgorithm samlResponse.setEncryptionCert samlResponse.setEncryptionPublicKey
    samlResponse.setIncludeAttributeNameFormat samlResponse.setIssuer samlResponse.setKey
    samlResponse.setLifetimeInSeconds samlResponse.setMapIdentities samlResponse.setMapUnknownClaimsAsIs
    samlResponse.setNameIdentifierFormat samlResponse.setNameIdentifierProbes
    samlResponse.setPassthroughClaimsWithNoMapping samlResponse.setRecipient samlResponse.setRelayState
    samlResponse.setSignResponse samlResponse.setSignatureAlgorithm samlResponse.setSigningCert
    samlResponse.setTypedAttributes session.deleteMetadata session.evictMetadata session.revoke
    session.setCookieMode session.setExpiresAt session.setIdleExpiresAt session.setMetadata
    transaction.addTargetScope transaction.clearTargetScopes transaction.removeTargetScope
    transaction.setMetadata transaction.setTargetScopes validation.error`,
  'credentials-exchange': `${CACHE} access.deny accessToken.setCustomClaim transaction.addTargetScope
    transaction.clearTargetScopes transaction.removeTargetScope transaction.setTargetScopes`,
  'pre-user-registration': `${CACHE} ${METADATA} access.deny validation.error`,
  'post-user-registration': CACHE,
  'post-change-password': CACHE,
  'send-phone-message': CACHE,
  'custom-phone-provider': DELIVERY,
  'custom-email-provider': DELIVERY,
  'password-reset-post-challenge': `${CACHE} ${CHALLENGES} ${REDIRECT} access.deny transaction.setResultUrl`,
  'custom-token-exchange': `${CACHE} ${METADATA} access.deny access.rejectInvalidSubjectToken
    authentication.setActor authentication.setOrganization authentication.setUserByConnection
    authentication.setUserById`,
};

/** The function of each trigger. */
const ENTRIES: Record<string, string> = {
  'post-login': 'onExecutePostLogin',
  'credentials-exchange': 'onExecuteCredentialsExchange',
  'pre-user-registration': 'onExecutePreUserRegistration',
  'post-user-registration': 'onExecutePostUserRegistration',
  'post-change-password': 'onExecutePostChangePassword',
  'send-phone-message': 'onExecuteSendPhoneMessage',
  'custom-phone-provider': 'onExecuteCustomPhoneProvider',
  'custom-email-provider': 'onExecuteCustomEmailProvider',
  'password-reset-post-challenge': 'onExecutePostChallenge',
  'custom-token-exchange': 'onExecuteCustomTokenExchange',
};

/** The members of the event at a login in the password grant, which has neither session nor refresh token. */
const LOGIN_EVENT = `authentication.methods authorization.roles client.client_id client.metadata client.name
  connection.id connection.metadata connection.name connection.strategy request.body request.geoip request.hostname
  request.ip request.language request.method request.query request.user_agent resource_server.identifier
  security_context stats.logins_count tenant.id transaction.acr_values transaction.locale transaction.metadata
  transaction.prompt transaction.protocol transaction.requested_scopes transaction.response_type
  transaction.target_scopes transaction.ui_locales user.app_metadata user.created_at user.email
  user.email_verified user.enrolledFactors user.identities user.multifactor
  user.updated_at user.user_id user.user_metadata`;
const MACHINE_EVENT = `accessToken.customClaims accessToken.scope client.client_id client.metadata client.name
  request.body request.geoip request.hostname request.ip request.language request.method request.user_agent
  resource_server.identifier tenant.id transaction.requested_scopes transaction.target_scopes`;

const words = (text: string) => text.split(/\s+/).filter(Boolean);
const CLAIM = 'https://example.test/event';

describe('what is published of actions', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged({
      ...tenant,
      customDomains: [
        {
          domain: 'login.example.test',
          status: 'ready',
          domain_metadata: { brand: 'blue' },
          api_key: 'the-api-key-of-the-edge-of-login',
        },
      ],
    });
  });
  after(() => server.stop());

  for (const [trigger, published] of Object.entries(METHODS)) {
    it(`api of ${trigger} has every published method`, async () => {
      const code = `exports.${ENTRIES[trigger]} = async (event, api) => {
        console.log(Object.entries(api).flatMap(([group, members]) =>
          Object.entries(members).filter(([, one]) => typeof one === 'function').map(([name]) => group + '.' + name),
        ).join(' '));
      };`;
      const made = await managed(server, 'POST', '/actions/actions', {
        name: `what ${trigger} has`,
        code,
        supported_triggers: [{ id: trigger }],
      });
      const tried = await managed(server, 'POST', `/actions/actions/${made.body.id}/test`, { payload: {} });
      expect(tried.status, JSON.stringify(tried.body)).to.equal(200);
      const has = words(JSON.stringify(tried.body).replace(/["\\,:{}[\]]/g, ' '));
      expect(words(published).filter((one) => !has.includes(one))).to.deep.equal([]);
    });
  }

  const eventOf = async (form: Record<string, string>, headers: Record<string, string> = {}) => {
    const answer = await createAgent(server).request('/oauth/token', {
      form: { audience: API, ...form },
      headers: { 'accept-language': 'en', 'user-agent': 'a test', ...headers },
    });
    expect(answer.status, answer.text).to.equal(200);
    return payload(answer.json().access_token)[CLAIM] as Record<string, object>;
  };
  const missing = (event: Record<string, object>, published: string) =>
    words(published).filter((path) => {
      const [part = '', name] = path.split('.');
      return name === undefined ? !(part in event) : !(name in (event[part] ?? {}));
    });
  const tell = `async (event, api) => {
    const { secrets, configuration, ...told } = event;
    api.accessToken.setCustomClaim('${CLAIM}', told);
  };`;
  const login = {
    ...PASSWORD_REQUEST,
    scope: 'openid',
  };

  it('event of a login has every published member that the server knows, and the custom domain of the request', async () => {
    await bindActions(server, 'post-login', { code: `exports.onExecutePostLogin = ${tell}` });
    const event = await eventOf(login);
    expect(missing(event, LOGIN_EVENT)).to.deep.equal([]);
    // There are no agents, forms and risk assessments here; and the request went to the tenant's own name.
    expect(event).not.to.have.any.keys('agent', 'prompt', 'custom_domain');
    expect(event.authentication).not.to.have.property('riskAssessment');
    const there = await eventOf(login, { host: 'login.example.test' });
    expect(there.custom_domain).to.deep.equal({
      domain: 'login.example.test',
      domain_metadata: { brand: 'blue' },
    });
    const elsewhere = await eventOf(login, { host: 'other.example.test' });
    expect(elsewhere).not.to.have.property('custom_domain');
  });

  it('event of a machine has every published member that the server knows', async () => {
    await bindActions(server, 'credentials-exchange', {
      code: `exports.onExecuteCredentialsExchange = ${tell}`,
    });
    const machine = { grant_type: 'client_credentials', client_id: 'm2m', client_secret: 'm2m-secret' };
    expect(missing(await eventOf(machine), MACHINE_EVENT)).to.deep.equal([]);
    const there = await eventOf(machine, { host: 'login.example.test' });
    expect(there.custom_domain).to.include({ domain: 'login.example.test' });
  });
});
