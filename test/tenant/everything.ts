// A tenant with every section that a tenant file can have, in the deploy tool's vocabulary.
import { parse } from 'yaml';
import { EXAMPLE } from '../management/example.ts';

const example = parse(EXAMPLE) as {
  clients: object[];
  clientGrants: object[];
  organizations: object[];
  branding: object;
};

export const EVERYTHING = {
  ...example,
  branding: {
    ...example.branding,
    templates: [{ template: 'universal_login', body: '<html>{%- auth0:head -%}{%- auth0:widget -%}</html>' }],
  },
  clients: [
    ...example.clients,
    {
      client_id: 'deploys',
      name: 'Deploys',
      app_type: 'non_interactive',
      client_secret: 'example-deploys-secret',
    },
  ],
  clientGrants: [
    ...(example.clientGrants ?? []),
    { client_id: 'Deploys', audience: 'https://old.example.test/api/v2/', scope: ['read:clients'] },
  ],
  organizations: [
    {
      name: 'acme',
      display_name: 'ACME',
      branding: { colors: { primary: '#112233', page_background: '#ffffff' } },
      metadata: { plan: 'gold' },
      connections: [{ name: 'Username-Password-Authentication', assign_membership_on_login: true }],
    },
  ],
  roles: [
    {
      name: 'Editor',
      description: 'Writes',
      permissions: [
        { permission_name: 'read:things', resource_server_identifier: 'https://api.example.test/' },
      ],
    },
    { name: 'Reader', permissions: [] },
  ],
  actions: [
    {
      name: 'Greet',
      code: 'exports.onExecutePostLogin = async () => {};',
      deployed: true,
      supported_triggers: [{ id: 'post-login', version: 'v3' }],
      secrets: [{ name: 'KEY', value: 'a-value-that-nobody-reads' }],
    },
  ],
  actionModules: [
    {
      name: 'Shared',
      code: 'module.exports = 1;',
      secrets: [{ name: 'OWN', value: 'of-a-module-that-nobody-reads' }],
    },
  ],
  tokenExchangeProfiles: [
    {
      name: 'Old tokens',
      subject_token_type: 'urn:acme:old',
      action: 'Greet',
      type: 'custom_authentication',
    },
  ],
  triggers: { 'post-login': [{ action_name: 'Greet', display_name: 'Says hello' }] },
  rules: [
    { name: 'Zeta', script: 'function (user, context, callback) { callback(null, user, context); }' },
    {
      name: 'Alpha',
      script: 'function (user, context, callback) { callback(null, user, context); }',
      enabled: false,
    },
  ],
  rulesConfigs: [{ key: 'KEY', value: 'a-value-of-rules-that-nobody-reads' }],
  themes: [
    { displayName: 'Ours', borders: { b: 1, a: 2 }, colors: {}, fonts: {}, page_background: {}, widget: {} },
  ],
  prompts: {
    identifier_first: true,
    customText: {
      en: { login: { login: { title: 'Hello' } } },
      de: { login: { login: { title: 'Hallo' } } },
    },
    partials: { 'login-id': { 'login-id': { 'form-content-start': '<b>x</b>' } } },
  },
  logStreams: [
    {
      name: 'Out',
      type: 'http',
      sink: { httpEndpoint: 'https://logs.example.test/', httpAuthorization: 'Bearer of-logs' },
    },
  ],
  customDomains: [{ domain: 'login.example.test', type: 'self_managed_certs' }],
  guardianSettings: { phone: { message_types: ['sms'] } },
  guardianFactorTemplates: [
    { name: 'sms', enrollment_message: 'Welcome: {{code}}', verification_message: 'Back: {{code}}' },
  ],
  phoneTemplates: [
    { type: 'otp_verify', disabled: false, content: { from: '+15550100101', body: { text: '{{code}}' } } },
  ],
  emailTemplates: [
    {
      template: 'welcome_email',
      body: 'Hi',
      from: 'a@example.test',
      subject: 'Hi',
      syntax: 'liquid',
      enabled: true,
    },
  ],
  pages: [{ name: 'login', html: '<html>@@config@@</html>', enabled: false }],
};
