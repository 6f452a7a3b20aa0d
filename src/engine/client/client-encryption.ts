// Encrypted tokens: nested JWTs (RFC 7519 §5.2), signed first (RFC 7519 §11.2).

import type { KeyObject } from 'node:crypto';
import { CompactEncrypt } from 'jose';
import type { AdapterPayload, Configuration, JWK, ResourceServer } from 'oidc-provider';
import { publicKeyOf } from '../../records/clients/client-keys.ts';
import { CONTENT_ENCRYPTION, ENCRYPTION_ALGS, encryptionPem } from '../../records/clients/encryption.ts';
import type { ResourceServer as Api, Client } from '../../records/collections.ts';
import { publicPemKey } from '../../runtime/pem-keys.ts';

/** The engine's settings for encryption. */
export const ENCRYPTION: NonNullable<Configuration['enabledJWA']> = {
  idTokenEncryptionAlgValues: [...ENCRYPTION_ALGS],
  idTokenEncryptionEncValues: [...CONTENT_ENCRYPTION],
  authorizationEncryptionAlgValues: [...ENCRYPTION_ALGS],
  authorizationEncryptionEncValues: [...CONTENT_ENCRYPTION],
  // Requests cannot be encrypted: our keys are for signatures only.
  requestObjectEncryptionAlgValues: [],
  requestObjectEncryptionEncValues: [],
};

type Encrypt = NonNullable<NonNullable<ResourceServer['jwt']>['encrypt']>;

/** Returns the engine's settings to encrypt the access tokens of an API; empty when they are not encrypted. */
export function accessTokenEncryption({ token_encryption: settings }: Api): { encrypt?: Encrypt } {
  if (settings === undefined || settings === null) return {};
  const { alg, kid, pem } = settings.encryption_key;
  return { encrypt: { alg, enc: 'A256GCM', key: publicKeyOf({ alg, pem }), ...(kid && { kid }) } };
}

/** Returns the client metadata and the keys to encrypt an application's ID tokens and responses (JARM §3). */
export function clientEncryption(client: Client): { metadata: AdapterPayload; keys: JWK[] } {
  const key = encryptionKeyOf(client);
  const { id_token_encrypted_response_alg: idToken, authorization_encrypted_response_alg: response } = client;
  if (key === undefined) return { metadata: {}, keys: [] };
  const algs = new Set([idToken, response].filter((alg) => alg !== undefined));
  return {
    metadata: {
      ...(idToken !== undefined && {
        id_token_encrypted_response_alg: idToken,
        id_token_encrypted_response_enc: client.id_token_encrypted_response_enc ?? 'A256GCM',
      }),
      ...(response !== undefined && {
        authorization_encrypted_response_alg: response,
        authorization_encrypted_response_enc: client.authorization_encrypted_response_enc ?? 'A256GCM',
      }),
    },
    keys: [...algs].map((alg) => ({ ...(key.export({ format: 'jwk' }) as JWK), alg, use: 'enc' })),
  };
}

function encryptionKeyOf(client: Client): KeyObject | undefined {
  const pem = encryptionPem(client);
  return pem === undefined ? undefined : publicPemKey(pem.replaceAll('\\n', '\n'));
}

/**
 * Encrypts a signed JWT for an application in the way of its ID tokens. The header repeats issuer and audience (RFC
 * 7519 §5.3).
 * @returns the JWT unchanged for an application whose ID tokens are not encrypted.
 */
export async function encryptFor(
  client: Client,
  { jwt, issuer }: { jwt: string; issuer: string },
): Promise<string> {
  const { id_token_encrypted_response_alg: alg, id_token_encrypted_response_enc: enc = 'A256GCM' } = client;
  const key = encryptionKeyOf(client);
  if (alg === undefined || key === undefined) return jwt;
  return new CompactEncrypt(Buffer.from(jwt))
    .setProtectedHeader({ alg, enc, cty: 'JWT', iss: issuer, aud: client.client_id })
    .encrypt(key);
}
