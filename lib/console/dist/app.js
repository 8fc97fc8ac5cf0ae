import{X as i,b as o,l as r,n as m}from"./shell.js";var p=document.getElementById("app");p&&m().finally(()=>o(r(i,{}),p));
