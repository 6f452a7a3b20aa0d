// Checks SAML metadata in a tenant file when the file is read.
import { AuthError } from '../../../http/errors.ts';
import type { TenantFile } from '../../../records/tenant/tenant.ts';
import { readMetadataNow } from './metadata-import.ts';
import { isSaml } from './provider.ts';

/** Returns a message, with the path, for each connection whose `metadataXml` is not the metadata of an identity provider. */
export function metadataFaults({ connections }: Pick<TenantFile, 'connections'>): string[] {
  return connections.flatMap((connection, index) => {
    const { metadataXml } = connection.options;
    if (!isSaml(connection) || typeof metadataXml !== 'string') return [];
    try {
      readMetadataNow(metadataXml);
      return [];
    } catch (thrown) {
      if (!(thrown instanceof AuthError)) throw thrown;
      return [`connections[${index}].options.metadataXml: ${thrown.error_description}`];
    }
  });
}
