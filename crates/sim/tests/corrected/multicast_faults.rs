//! Links that fail under messages to groups.
