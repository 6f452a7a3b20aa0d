// The members of the configuration that are secrets, by the hosted service's names. They are stored sealed, also in
// sections that Gatehouse only stores.

import { smsSecrets } from './connections/passwordless.ts';
import { mailSecrets } from './tenant/delivery.ts';

const SECRET =
  /secret|password|passwd|passphrase|private_?key|credential|token$|(api|access|write|sas|server|signing|decryption|request)_?key$|connection_?string|custom_?headers$|^(http|webhook_)?authorization$|^(auth|pass|smtp_pass|pkcs7|p12|skey|setup|sumoSourceAddress)$/i;

/**
 * Whether a member of this name is a secret, in any record. Everything that shows or logs values by name hides at
 * least these.
 */
export const isNamedSecret = (name: string): boolean => SECRET.test(name);

export const tenantSecrets = [
  'webPush.private_key',
  ...mailSecrets.map((name) => `emailProvider.credentials.${name}`),
  'phoneProviders.*.credentials.auth_token',
  ...['auth_token', 'aws_secret_access_key', 'p12', 'server_key', 'server_credentials'].map(
    (name) => `guardianFactorProviders.*.${name}`,
  ),
  ...['auth_token', 'aws_secret_access_key', 'skey', 'p12', 'server_key', 'server_credentials'].map(
    (name) => `guardianSettings.*.${name}`,
  ),
  'rulesConfigs.*.value',
  'actions.*.secrets.*.value',
  'hooks.*.secrets.*',
];

export const clientSecrets = [
  'client_secret',
  ...['private_key', 'privateKey', 'secret', 'storageAccessKey', 'sasKey', 'signing_key'].map(
    (name) => `addons.*.${name}`,
  ),
];

export const connectionSecrets = [
  'client_secret',
  'app_secret',
  'consumerSecret',
  ...smsSecrets,
  'signing_key',
  'signingKey',
  'signSAMLRequestKey',
  'decryptionKey',
  'bind_password',
  'LDAP_BIND_PASSWORD',
  'bindCredentials',
  'password',
  'configuration.*',
  'customHeaders.*',
].map((name) => `options.${name}`);
