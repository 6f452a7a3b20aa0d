// Metadata that a tenant file has as text, judged when the file is read.
import { AuthError } from '../../http/errors.ts';
import type { TenantFile } from '../../records/tenant.ts';
import { readMetadata } from './metadata-import.ts';
import { isSaml } from './provider.ts';

/** One sentence for each connection whose `metadataXml` is no metadata of an identity provider, with its path. */
export function metadataFaults({ connections }: Pick<TenantFile, 'connections'>): string[] {
  return connections.flatMap((connection, index) => {
    const { metadataXml } = connection.options;
    if (!isSaml(connection) || typeof metadataXml !== 'string') return [];
    try {
      readMetadata(metadataXml);
      return [];
    } catch (thrown) {
      if (!(thrown instanceof AuthError)) throw thrown;
      return [`connections[${index}].options.metadataXml: ${thrown.error_description}`];
    }
  });
}
