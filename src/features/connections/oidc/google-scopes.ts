// The scopes of Google's APIs by the options of a connection that request them. Options for discontinued services (Coordinate,
// Latitude, Orkut …) are left out, because Google rejects the whole request if it has one of their scopes.

const API = 'https://www.googleapis.com/auth/';

/** Options whose scope has the same name, with dots in place of underscores. */
const DOTTED =
  'analytics blogger calendar calendar_addons_execute calendar_events calendar_events_readonly calendar_settings_readonly ' +
  'contacts contacts_other_readonly contacts_readonly directory_readonly drive drive_activity drive_activity_readonly ' +
  'drive_appdata drive_apps_readonly drive_file drive_metadata drive_metadata_readonly drive_photos_readonly ' +
  'drive_readonly drive_scripts gmail_compose gmail_insert gmail_labels gmail_metadata gmail_modify gmail_readonly ' +
  'gmail_send gmail_settings_basic gmail_settings_sharing tasks tasks_readonly youtube youtube_readonly youtube_upload ' +
  'youtubepartner';

/** Option to scope. */
export const GOOGLE_SCOPES: Readonly<Record<string, string>> = {
  email: 'email',
  profile: 'profile',
  ...Object.fromEntries(DOTTED.split(' ').map((name) => [name, `${API}${name.replaceAll('_', '.')}`])),
  adsense_management: `${API}adsense`,
  chrome_web_store: `${API}chromewebstore.readonly`,
  contacts_new: `${API}contacts`,
  content_api_for_shopping: `${API}content`,
  gmail: 'https://mail.google.com/',
  gmail_new: 'https://mail.google.com/',
  google_books: `${API}books`,
  google_cloud_storage: `${API}devstorage.read_write`,
  google_drive: `${API}drive`,
  google_drive_files: `${API}drive.file`,
  webmaster_tools: `${API}webmasters`,
  youtube_channelmemberships_creator: `${API}youtube.channel-memberships.creator`,
  youtube_new: `${API}youtube`,
};
