// The data of a page's application that templates use.
import { CONSOLE_CLIENT } from '../../records/administrators.ts';
import type { Client } from '../../records/collections.ts';

export interface ShownClient {
  name: string;
  logo?: string;
  /** Whether it is the console, whose login pages do not show the tenant's branding. */
  isConsole?: true;
}

/** Returns the data of an application for templates. */
export function shownClient({
  client_id,
  name,
  logo_uri: logo,
}: Pick<Client, 'client_id' | 'name'> & { logo_uri?: string | undefined }): ShownClient {
  return {
    name,
    ...(logo !== undefined && { logo }),
    ...(client_id === CONSOLE_CLIENT && { isConsole: true }),
  };
}
