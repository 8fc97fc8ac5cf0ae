import{b as o,ua as i,v as r,x as m}from"./shell.js";var p=document.getElementById("app");p&&m().finally(()=>o(r(i,{}),p));
