// The application that a page is for, as templates know it.
import { CONSOLE_CLIENT } from '../records/administrators.ts';
import type { Client } from '../records/collections.ts';

export interface ShownClient {
  name: string;
  logo?: string;
  /** Whether it is the console, whose administrators are shown nothing of the tenant's own look. */
  isConsole?: true;
}

/** What templates are given of an application. */
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
